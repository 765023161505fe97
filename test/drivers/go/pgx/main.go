// pgx v4: the native interface (statement cache by prepare and by describe, simple protocol), Batch, CopyFrom, COPY as
// text, nested transactions, contexts that cancel, its pool, and pgconn.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgx/v4"
	"github.com/jackc/pgx/v4/pgxpool"
)

var ctx = context.Background()

func show(what string, value interface{}) { fmt.Printf("%s: %v\n", what, value) }

func stateOf(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return "error " + pgErr.Code
	}
	return "error of the driver"
}

// Shows what the work gives, or the SQLSTATE of its error.
func attempt(what string, work func() (interface{}, error)) {
	value, err := work()
	if err != nil {
		value = stateOf(err)
	}
	show(what, value)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

type querier interface {
	Query(ctx context.Context, sql string, args ...interface{}) (pgx.Rows, error)
}

func ask(c querier, sql string, values ...interface{}) (interface{}, error) {
	rows, err := c.Query(ctx, sql, values...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var saw []string
	for rows.Next() {
		row, err := rows.Values()
		if err != nil {
			return nil, err
		}
		saw = append(saw, fmt.Sprint(row))
	}
	return strings.Join(saw, ";"), rows.Err()
}

func showAsked(what string, c querier, sql string, values ...interface{}) {
	attempt(what, func() (interface{}, error) { return ask(c, sql, values...) })
}

func address() string {
	get := os.Getenv
	return fmt.Sprintf("postgres://%s:%s@%s:%s/%s?sslmode=disable", get("PGUSER"), get("PGPASSWORD"), get("PGHOST"), get("PGPORT"), get("PGDATABASE"))
}

func connect(settings string) *pgx.Conn {
	c, err := pgx.Connect(ctx, address()+settings)
	must(err)
	return c
}

func statements(c *pgx.Conn) {
	_, err := c.Exec(ctx, "create table go_pgx (id int primary key, note text)")
	must(err)
	for n := 0; n < 10; n++ {
		tag, err := c.Exec(ctx, "insert into go_pgx values ($1, $2)", n, fmt.Sprint("note ", n))
		must(err)
		show(fmt.Sprint("put ", n), tag)
		showAsked(fmt.Sprint("get ", n), c, "select note from go_pgx where id = $1", n)
	}
	prepared, err := c.Prepare(ctx, "mine", "select note from go_pgx where id = $1")
	must(err)
	show("prepared", prepared.ParamOIDs)
	for n := 1; n < 4; n++ {
		showAsked("mine", c, "mine", n)
	}
	must(c.Deallocate(ctx, "mine"))
	_, err = c.Prepare(ctx, "mine", "select 1")
	must(err)
	showAsked("mine anew", c, "mine")
	for n := 0; n < 30; n++ { // more than the cache keeps
		showAsked("short life", c, fmt.Sprintf("select $1::int + %d", n), 1)
	}
	_, err = c.Exec(ctx, "deallocate all")
	attempt("all deallocated", func() (interface{}, error) { return "yes", err })
	showAsked("a name of before", c, "select note from go_pgx where id = $1", 3)
}

func types(c *pgx.Conn) {
	when := time.Date(2024, 2, 29, 12, 30, 0, 0, time.UTC)
	for n := 0; n < 2; n++ {
		var t time.Time
		var ints []int32
		var texts []string
		var doc map[string]interface{}
		var raw []byte
		var numeric string
		var yes bool
		var f float64
		var none *string
		err := c.QueryRow(ctx, "select $1::timestamptz, $2::int[], $3::text[], $4::jsonb, $5::bytea, $6::numeric::text, $7::bool, $8::float8, $9::text",
			when, []int32{1, 2}, []string{"a,b", "c\"d"}, map[string]interface{}{"k": []int{1}}, []byte{0, 255}, "12345678901234567890.5", true, 0.1, nil).
			Scan(&t, &ints, &texts, &doc, &raw, &numeric, &yes, &f, &none)
		attempt("types", func() (interface{}, error) {
			return []interface{}{t.UTC(), ints, texts, doc, raw, numeric, yes, f, none}, err
		})
	}
}

func failures(c *pgx.Conn) {
	for n := 0; n < 2; n++ {
		showAsked("syntax", c, "selec 1")
		showAsked("division", c, "select 1 / $1::int", 0)
		showAsked("duplicate", c, "insert into go_pgx values ($1)", 1)
		showAsked("missing", c, "select * from missing_table where a = $1", 1)
		showAsked("usable", c, "select $1::int", 1)
	}
	showAsked("deallocate of nobody", c, "deallocate nobody")
}

func transactions(c *pgx.Conn) {
	tx, err := c.Begin(ctx)
	must(err)
	_, err = tx.Exec(ctx, "insert into go_pgx values (500, 'gone')")
	must(err)
	inner, err := tx.Begin(ctx)
	must(err)
	showAsked("inner", inner, "insert into go_pgx values ($1)", 500)
	must(inner.Rollback(ctx))
	showAsked("inside", tx, "select count(*) from go_pgx where id = $1", 500)
	must(tx.Rollback(ctx))
	showAsked("outside", c, "select count(*) from go_pgx where id = $1", 500)
	must(c.BeginTxFunc(ctx, pgx.TxOptions{IsoLevel: pgx.Serializable, AccessMode: pgx.ReadOnly, DeferrableMode: pgx.Deferrable}, func(tx pgx.Tx) error {
		showAsked("level", tx, "show transaction_isolation")
		return nil
	}))
	err = c.BeginFunc(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "insert into go_pgx values ($1)", 1)
		return err
	})
	show("failed", stateOf(err))
}

func batches(c *pgx.Conn) {
	for _, divisor := range []int{1, 0, 2} {
		batch := &pgx.Batch{}
		for n := 0; n < 20; n++ {
			batch.Queue("select $1::int * 2", n)
		}
		batch.Queue("select 10 / $1::int", divisor)
		batch.Queue("insert into go_pgx values ($1, 'batch')", 600+divisor)
		results := c.SendBatch(ctx, batch)
		sum := 0
		for n := 0; n < 20; n++ {
			var got int
			must(results.QueryRow().Scan(&got))
			sum += got
		}
		var got int
		err := results.QueryRow().Scan(&got)
		attempt("batch", func() (interface{}, error) { return []int{sum, got}, err })
		_, err = results.Exec()
		attempt("last of the batch", func() (interface{}, error) { return "done", err })
		err = results.Close()
		attempt("closed", func() (interface{}, error) { return "well", err })
	}
	showAsked("kept", c, "select id from go_pgx where note = $1 order by id", "batch")
}

func copies(c *pgx.Conn) {
	rows := make([][]interface{}, 1000)
	for n := range rows {
		rows[n] = []interface{}{int32(1000 + n), "copied"}
	}
	count, err := c.CopyFrom(ctx, pgx.Identifier{"go_pgx"}, []string{"id", "note"}, pgx.CopyFromRows(rows))
	attempt("copied in", func() (interface{}, error) { return count, err })
	_, err = c.CopyFrom(ctx, pgx.Identifier{"go_pgx"}, []string{"id", "note"}, pgx.CopyFromRows(rows))
	show("copied twice", stateOf(err))
	var out bytes.Buffer
	tag, err := c.PgConn().CopyTo(ctx, &out, "copy (select id, note from go_pgx where id >= 1000 order by 1) to stdout")
	attempt("copied out", func() (interface{}, error) { return fmt.Sprint(tag, " ", out.Len()), err })
	_, err = c.PgConn().CopyFrom(ctx, strings.NewReader("no number\tx\n"), "copy go_pgx from stdin")
	show("copy that fails", stateOf(err))
	showAsked("usable", c, "select $1::int", 1)
	showAsked("many rows", c, "select sum(length(a)) from (select repeat('x', g) as a from generate_series(1, $1::int) g) as s", 500)
	attempt("several", func() (interface{}, error) {
		results, err := c.PgConn().Exec(ctx, "select 1; select 2; select 1/0; select 3").ReadAll()
		return len(results), err
	})
}

func cancel(settings string) {
	c := connect(settings)
	short, stop := context.WithTimeout(ctx, 200*time.Millisecond)
	_, err := c.Exec(short, "select pg_sleep($1)", 20)
	stop()
	show("timeout", []interface{}{errors.Is(err, context.DeadlineExceeded), c.IsClosed()})
	c = connect(settings)
	go func() {
		time.Sleep(200 * time.Millisecond)
		must(c.PgConn().CancelRequest(ctx))
	}()
	showAsked("canceled", c, "select pg_sleep(20)")
	showAsked("usable after cancel", c, "select $1::int", 1)
	other := connect(settings)
	number := c.PgConn().PID()
	done := make(chan bool)
	go func() {
		defer close(done)
		time.Sleep(200 * time.Millisecond)
		_, err := other.Exec(ctx, "select pg_cancel_backend($1)", number)
		must(err)
	}()
	showAsked("canceled by number", c, "select pg_sleep(20)")
	<-done
	must(c.Close(ctx))
	must(other.Close(ctx))
}

func ddl(c *pgx.Conn, settings string) {
	other, holder := connect(settings), connect(settings)
	_, err := holder.Exec(ctx, "begin") // so that all the rest happens on one server of two
	must(err)
	_, err = c.Exec(ctx, "create table go_ddl as select 1 as a")
	must(err)
	for n := 0; n < 2; n++ {
		showAsked("before", other, "select * from go_ddl")
	}
	_, err = c.Exec(ctx, "alter table go_ddl add b text default 'x'")
	must(err)
	showAsked("after alter", other, "select * from go_ddl")
	showAsked("again", other, "select * from go_ddl")
	showAsked("another client", c, "select * from go_ddl")
	_, err = c.Exec(ctx, "drop table go_ddl")
	must(err)
	must(holder.Close(ctx))
	must(other.Close(ctx))
}

func pool(settings string) {
	config, err := pgxpool.ParseConfig(address() + settings + "&pool_max_conns=8")
	must(err)
	made, err := pgxpool.ConnectConfig(ctx, config)
	must(err)
	defer made.Close()
	var wait sync.WaitGroup
	var mutex sync.Mutex
	var saw []string
	for number := 0; number < 40; number++ {
		wait.Add(1)
		go func(number int) {
			defer wait.Done()
			must(made.BeginFunc(ctx, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "insert into go_pgx values ($1, 'pool')", 5000+number); err != nil {
					return err
				}
				row, err := ask(tx, "select id, $2::int from go_pgx where id = $1", 5000+number, number)
				mutex.Lock()
				saw = append(saw, fmt.Sprint(row))
				mutex.Unlock()
				return err
			}))
		}(number)
	}
	wait.Wait()
	sort.Strings(saw)
	show("pool", saw)
	showAsked("kept", made, "select count(*) from go_pgx where note = $1", "pool")
}

func main() {
	for _, settings := range []string{"&application_name=pgx&statement_cache_capacity=10", "&statement_cache_mode=describe", "&statement_timeout=30s"} {
		show("settings", settings)
		c := connect(settings)
		showAsked("settings there", c, "select current_setting('application_name'), current_setting('statement_timeout')")
		statements(c)
		must(c.Close(ctx))
		c = connect(settings) // its cache names what "deallocate all" has taken
		types(c)
		failures(c)
		transactions(c)
		batches(c)
		copies(c)
		cancel(settings)
		ddl(c, settings)
		pool(settings)
		_, err := c.Exec(ctx, "drop table go_pgx")
		must(err)
		must(c.Close(ctx))
	}
	show("end", "reached")
}
