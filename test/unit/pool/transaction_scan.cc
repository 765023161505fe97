#include "pool/transaction_scan.h"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <string>

namespace lokadb {
namespace {

namespace data = boost::unit_test::data;

struct Case {
  std::string_view text;
  bool goes_on;
  std::string_view encoding = "UTF8";
  bool has_standard_strings = true;
  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.text; }
};

const Case kCases[] = {
    {"select 1", false},
    {"select 1; select 2; ; ", false},
    {"begin; select 1; commit", false},
    {"begin; select 1; commit; -- done\n ; /* really */", false},
    {"begin; select 1; commit; select 2", true},
    {"begin; select 1; COMMIT WORK; select 2", true},
    {"commit;x", true},
    {"commit;;$1", true},
    {"commit;\"x\"", true},
    {"commit; 'x'", true},
    {"commit;-1", true},
    {"commit;/1", true},
    {"commit;/* -- ; */\n-- x\nselect", true},
    {" /* a */ end; select", true},
    {"-- a\nabort; select", true},
    {"rollback; select", true},
    {"rollback and chain; select", true},
    {"rollback to a; select", false},
    {"rollback transaction to savepoint a; select", false},
    {"rollback work to a; rollback; select", true},
    {"prepare transaction 'x'; select", true},
    {"prepare p as select 1; execute p", false},
    {"select 'a; commit; b'; select", false},
    {"select 'it''s; commit; '; select", false},
    {"select '\\'; commit; select '", true},
    {"select '\\'; commit; select '", false, "UTF8", false},
    {"select E'\\'; commit; select '", false},
    {"select E'a' \n '\\'; commit; select '", false},
    {"select e '\\'; commit; select '", true},
    {"select \"; commit; \"; select", false},
    {"select $$; commit; $$; select", false},
    {"select $a$; commit; $$ $b$ $a; $a$; select", false},
    {"select $a$; commit; $a$; commit; select", true},
    {"select a$b$; commit; select $b$", true},
    {"select $1; commit; select $1", true},
    {"select /* ; commit; /* ; */ commit; */ 1; select", false},
    {"select /**/ 1; commit; select", true},
    {"select 1 -- ; commit;\n; select", false},
    {"select case when true then 1 end; select", false},
    {"commitment; select", false},
    {"commit$; select", false},
    {"commit\xc3\xa9; select", false},
    {"select '\x83\x5c'; commit; select '", true, "SJIS", false},
    {"select '\x83\x5c'; commit; select '", true, "shift_jis_2004", false},
    {"select '\xb1\x5c'; commit; select '", false, "SJIS", false},
    {"select '\xb1\x5c'; commit; select '", true, "BIG5", false},
    {"select '\xb1\x5c'; commit; select '", false, "LATIN1", false},
};

BOOST_DATA_TEST_CASE(a_scan_finds_what_is_behind_the_end_of_a_transaction, data::make(kCases)) {
  TransactionScan at_once(sample.encoding, sample.has_standard_strings);
  BOOST_TEST(at_once.feed(sample.text) == sample.goes_on);
  BOOST_TEST(at_once.feed(" ") == sample.goes_on);
  TransactionScan in_bytes(sample.encoding, sample.has_standard_strings);
  bool goes_on = false;
  for (char c : sample.text) goes_on = in_bytes.feed({&c, 1});
  BOOST_TEST(goes_on == sample.goes_on);
}

}  // namespace
}  // namespace lokadb
