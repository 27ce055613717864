// Package database copies a SQLite database while another program writes it, and reads such a copy. It never writes to the database or to
// the files beside it. Its locks only delay the other program's log reset for a moment.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver with that name
)

// Copy returns the database in a file at one moment (VACUUM INTO), while others use it. The copy has no log and no free pages. work is the
// directory in which the copy is made. A database of more than most bytes is an error.
func Copy(ctx context.Context, path, work string, most int64) (content []byte, err error) {
	db, err := open(path, url.Values{"mode": {"ro"}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var size int64
	if err := db.QueryRowContext(ctx, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").Scan(&size); err != nil {
		return nil, fmt.Errorf("read the database %s: %w", path, err)
	}
	if size > most {
		return nil, fmt.Errorf("the database %s has %d MiB, and more than %d MiB are not copied", path, size>>20, most>>20)
	}
	at, err := os.MkdirTemp(work, "copy-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for a copy: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(at)) }()
	to := filepath.Join(at, "database")
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		return nil, fmt.Errorf("copy the database %s: %w", path, err)
	}
	return os.ReadFile(to) //nolint:wrapcheck // it names the file
}

// mostRows limits the rows of an answer; a filesystem has fewer of each kind.
const mostRows = 1 << 20

// Ask runs queries on a copy after checking all of it (integrity_check, foreign_key_check). It returns an error for a copy that is damaged
// or contradicts itself. Queries are SQL statements by name, and the answers have the same names. NULL becomes an empty text.
func Ask(ctx context.Context, content []byte, work string, queries map[string]string) (answers map[string][][]string, err error) {
	at, err := os.MkdirTemp(work, "read-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for a copy: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(at)) }()
	path := filepath.Join(at, "database")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return nil, fmt.Errorf("write a copy: %w", err)
	}
	// No other program uses this file. It comes from a place that others may write to, so only these queries are run in it.
	db, err := open(path, url.Values{
		"mode": {"ro"}, "immutable": {"1"}, "_pragma": {"trusted_schema(0)", "cell_size_check(1)", "query_only(1)"},
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for check, good := range map[string]func([][]string) bool{
		"PRAGMA integrity_check(3)": func(found [][]string) bool { return len(found) == 1 && len(found[0]) == 1 && found[0][0] == "ok" },
		"PRAGMA foreign_key_check":  func(found [][]string) bool { return len(found) == 0 },
	} {
		found, err := ask(ctx, db, check)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the database can't be read (%s): %w", check, err)
		case !good(found):
			return nil, fmt.Errorf("the database is damaged (%s): %s", check, some(found))
		}
	}
	answers = map[string][][]string{}
	for name, query := range queries {
		if answers[name], err = ask(ctx, db, query); err != nil {
			return nil, fmt.Errorf("the database does not say its %s: %w", name, err)
		}
	}
	return answers, nil
}

// open opens the database in an existing file.
func open(path string, with url.Values) (*sql.DB, error) {
	// Another writer may hold a lock for a moment; the value is in milliseconds.
	with.Add("_pragma", "busy_timeout(10000)")
	uri := url.URL{Scheme: "file", Path: path, RawQuery: with.Encode()}
	db, err := sql.Open("sqlite", uri.String())
	if err != nil {
		return nil, fmt.Errorf("open the database %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

func ask(ctx context.Context, db *sql.DB, query string) (out [][]string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller adds the question
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller adds the question
	}
	for rows.Next() {
		if len(out) == mostRows {
			return nil, fmt.Errorf("it has more than %d rows", mostRows)
		}
		values, to := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			to[i] = &values[i]
		}
		if err := rows.Scan(to...); err != nil {
			return nil, err //nolint:wrapcheck // the caller adds the question
		}
		row := make([]string, len(columns))
		for i, v := range values {
			row[i] = v.String
		}
		out = append(out, row)
	}
	return out, rows.Err() //nolint:wrapcheck // the caller adds the question
}

// some returns the first few rows that were found.
func some(found [][]string) string {
	const most = 3
	var out []string
	for _, row := range found[:min(most, len(found))] {
		out = append(out, strings.Join(row, " "))
	}
	return strings.Join(out, "; ")
}
