// lib/pq by database/sql: its pool, prepared statements that follow their connections, transactions, COPY, arrays,
// contexts that cancel, and binary_parameters.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/lib/pq"
)

var ctx = context.Background()

func show(what string, value interface{}) { fmt.Printf("%s: %v\n", what, value) }

func stateOf(err error) string {
	var pqErr *pq.Error
	if errors.As(err, &pqErr) {
		return "error " + string(pqErr.Code)
	}
	return "error " + err.Error()
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
	QueryContext(ctx context.Context, sql string, args ...interface{}) (*sql.Rows, error)
}

func read(rows *sql.Rows) (interface{}, error) {
	defer rows.Close()
	var saw []string
	for {
		columns, err := rows.Columns()
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			row := make([]interface{}, len(columns))
			for i := range row {
				row[i] = new(sql.NullString)
			}
			if err := rows.Scan(row...); err != nil {
				return nil, err
			}
			for _, value := range row {
				if text := value.(*sql.NullString); text.Valid {
					saw = append(saw, fmt.Sprintf("%q", text.String))
				} else {
					saw = append(saw, "null")
				}
			}
		}
		if !rows.NextResultSet() {
			break
		}
	}
	return strings.Join(saw, " "), rows.Err()
}

func ask(what string, c querier, text string, values ...interface{}) {
	attempt(what, func() (interface{}, error) {
		rows, err := c.QueryContext(ctx, text, values...)
		if err != nil {
			return nil, err
		}
		return read(rows)
	})
}

func connect(settings string) *sql.DB {
	get := os.Getenv
	db, err := sql.Open("postgres", fmt.Sprintf("host=%s port=%s user=%s password=%s dbname=%s sslmode=disable %s",
		get("PGHOST"), get("PGPORT"), get("PGUSER"), get("PGPASSWORD"), get("PGDATABASE"), settings))
	must(err)
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	return db
}

func statements(db *sql.DB) {
	_, err := db.Exec("create table go_pq (id int primary key, note text)")
	must(err)
	put, err := db.Prepare("insert into go_pq values ($1, $2)")
	must(err)
	get, err := db.Prepare("select note from go_pq where id = $1")
	must(err)
	for n := 0; n < 10; n++ {
		_, err = put.Exec(n, fmt.Sprint("note ", n))
		must(err)
		var note string
		must(get.QueryRow(n).Scan(&note))
		show(fmt.Sprint("get ", n), note)
	}
	must(put.Close())
	must(get.Close())
	_, err = db.Prepare("select * from missing_table")
	show("prepared on nothing", stateOf(err))
	ask("several", db, "select 1; select 2, 3")
	for n := 0; n < 3; n++ {
		ask("types", db, "select $1::timestamptz at time zone 'UTC', $2::int[], $3::text[], $4::jsonb, $5::bytea, $6::numeric, $7::bool, $8::float8, $9::text",
			time.Date(2024, 2, 29, 12, 30, 0, 0, time.UTC), pq.Array([]int{1, 2}), pq.Array([]string{"a,b", "c\"d"}), `{"k": [1, null]}`, []byte{0, 255},
			"12345678901234567890.5", true, 0.1, nil)
	}
}

func failures(db *sql.DB) {
	for n := 0; n < 2; n++ {
		ask("syntax", db, "selec 1")
		ask("division", db, "select 1 / $1::int", 0)
		ask("duplicate", db, "insert into go_pq values ($1)", 1)
		ask("missing", db, "select * from missing_table where a = $1", 1)
		ask("usable", db, "select $1::int", 1)
	}
}

func transactions(db *sql.DB) {
	tx, err := db.Begin()
	must(err)
	inside, err := tx.Prepare("insert into go_pq values ($1, 'gone')")
	must(err)
	_, err = inside.Exec(500)
	must(err)
	_, err = tx.Exec("savepoint s")
	must(err)
	_, err = inside.Exec(500)
	show("inner", stateOf(err))
	ask("aborted", tx, "select $1::int", 1)
	_, err = tx.Exec("rollback to s")
	must(err)
	ask("inside", tx, "select count(*) from go_pq where id = $1", 500)
	must(tx.Rollback())
	ask("outside", db, "select count(*) from go_pq where id = $1", 500)
	tx, err = db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable, ReadOnly: true})
	must(err)
	ask("level", tx, "show transaction_isolation")
	ask("read only", tx, "insert into go_pq values ($1)", 501)
	must(tx.Rollback())
}

func copies(db *sql.DB) {
	copyIn := func(ids ...interface{}) error {
		tx, err := db.Begin()
		must(err)
		defer tx.Rollback()
		to, err := tx.Prepare(pq.CopyIn("go_pq", "id", "note"))
		must(err)
		for _, id := range ids {
			if _, err := to.Exec(id, "copied"); err != nil {
				return err
			}
		}
		if _, err := to.Exec(); err != nil {
			return err
		}
		if err := to.Close(); err != nil {
			return err
		}
		return tx.Commit()
	}
	many := make([]interface{}, 1000)
	for n := range many {
		many[n] = 1000 + n
	}
	must(copyIn(many...))
	ask("copied", db, "select count(*), sum(id) from go_pq where note = $1", "copied")
	show("copy that fails", stateOf(copyIn("no number")))
	show("copied twice", stateOf(copyIn(1000)))
	ask("usable", db, "select $1::int", 1)
}

func cancel(db *sql.DB) {
	for _, query := range []func(context.Context) error{
		func(short context.Context) error { _, err := db.ExecContext(short, "select pg_sleep(20)"); return err },
		func(short context.Context) error {
			_, err := db.ExecContext(short, "select pg_sleep($1)", 20)
			return err
		},
	} {
		short, stop := context.WithTimeout(ctx, 200*time.Millisecond)
		attempt("canceled", func() (interface{}, error) { return "no", query(short) })
		stop()
		ask("usable", db, "select $1::int", 1)
	}
}

func atOnce(db *sql.DB) {
	shared, err := db.Prepare("select id, $2::int from go_pq where id = $1")
	must(err)
	var wait sync.WaitGroup
	var mutex sync.Mutex
	var all []string
	for number := 0; number < 40; number++ {
		wait.Add(1)
		go func(number int) {
			defer wait.Done()
			tx, err := db.Begin()
			must(err)
			_, err = tx.Exec("insert into go_pq values ($1, 'pool')", 5000+number)
			must(err)
			rows, err := tx.Stmt(shared).Query(5000+number, number)
			must(err)
			saw, err := read(rows)
			must(err)
			must(tx.Commit())
			mutex.Lock()
			all = append(all, fmt.Sprint(saw))
			mutex.Unlock()
		}(number)
	}
	wait.Wait()
	sort.Strings(all)
	show("at once", all)
	ask("kept", db, "select count(*) from go_pq where note = $1", "pool")
	must(shared.Close())
}

func ddl(db, other *sql.DB) {
	holder, err := db.Begin() // so that all the rest happens on one server of two
	must(err)
	_, err = db.Exec("create table go_ddl as select 1 as a")
	must(err)
	star, err := other.Prepare("select * from go_ddl")
	must(err)
	for n := 0; n < 3; n++ {
		rows, err := star.Query()
		must(err)
		saw, err := read(rows)
		attempt("before", func() (interface{}, error) { return saw, err })
	}
	_, err = db.Exec("alter table go_ddl add b text default 'x'")
	must(err)
	attempt("after alter", func() (interface{}, error) {
		rows, err := star.Query()
		if err != nil {
			return nil, err
		}
		return read(rows)
	})
	ask("fresh", db, "select * from go_ddl where a = $1", 1)
	_, err = db.Exec("drop table go_ddl")
	must(err)
	must(holder.Rollback())
}

func main() {
	for _, settings := range []string{"application_name=pq", "binary_parameters=yes extra_float_digits=2 statement_timeout=30000"} {
		show("settings", settings)
		db, other := connect(settings), connect(settings)
		ask("settings there", db, "select current_setting('application_name'), current_setting('statement_timeout'), current_setting('extra_float_digits')")
		statements(db)
		failures(db)
		transactions(db)
		copies(db)
		cancel(db)
		atOnce(db)
		ddl(db, other)
		_, err := db.Exec("drop table go_pq")
		must(err)
		must(db.Close())
		must(other.Close())
	}
	show("end", "reached")
}
