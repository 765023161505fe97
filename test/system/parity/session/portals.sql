-- Cursors, also those that outlive their transaction.
begin;
declare c scroll cursor for select n from generate_series(1, 10) n;
fetch next from c;
fetch forward 3 from c;
fetch backward 2 from c;
fetch last from c;
fetch first from c;
fetch absolute 5 from c;
fetch relative -2 from c;
move forward 2 in c;
fetch from c;
fetch all from c;
fetch next from c;
select name, is_holdable, is_scrollable from pg_cursors;
close c;
fetch from c;
rollback;
declare nowhere cursor for select 1;
declare held cursor with hold for select n from generate_series(1, 4) n;
fetch 2 from held;
begin; fetch from held; rollback;
fetch all from held;
close all;
fetch from held;
\set FETCH_COUNT 3
select n from generate_series(1, 10) n;
select n / (8 - n) from generate_series(1, 10) n;
\set FETCH_COUNT 0
