package database_test

import (
	"bufio"
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/database"
)

// writerOf is the variable with the path of a database. It makes this program write that database repeatedly until its standard input ends.
const writerOf = "TEST_WRITER_OF_DATABASE"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerOf); path != "" {
		if err := write(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// writable opens a database as its service does, with a log beside it.
func writable(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=foreign_keys(1)&_pragma=busy_timeout(30000)")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

const tables = `
CREATE TABLE server (id INTEGER PRIMARY KEY, said INTEGER NOT NULL) STRICT;
CREATE TABLE target (id INTEGER PRIMARY KEY, server INTEGER NOT NULL REFERENCES server (id), said INTEGER NOT NULL, more TEXT) STRICT;
CREATE INDEX said ON target (said);
INSERT INTO server VALUES (1, 0);
INSERT INTO target VALUES (101, 1, 0, NULL), (102, 1, 0, NULL);
PRAGMA user_version = 5;`

// make5 makes a database with one server and two targets.
func make5(t *testing.T) (path string) {
	t.Helper()
	g := NewWithT(t)
	path = filepath.Join(t.TempDir(), "service.sqlite")
	db, err := writable(path)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = db.Exec(tables)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(db.Close()).To(Succeed())
	return path
}

// write writes one number to all rows in each transaction, and prints a line after the first one.
func write(path string) error {
	db, err := writable(path)
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		close(ended)
	}()
	for n := 1; ; n++ {
		if _, err := db.Exec("BEGIN IMMEDIATE; UPDATE server SET said = ?; UPDATE target SET said = ?, more = hex(randomblob(5000)); COMMIT", n, n); err != nil {
			return err
		}
		if n == 1 {
			_, _ = fmt.Fprintln(os.Stdout, "writing")
		}
		select {
		case <-ended:
			return db.Close()
		default:
		}
	}
}

// written starts a process that writes a database continuously until the test ends.
func written(t *testing.T, path string) {
	t.Helper()
	g := NewWithT(t)
	writer := exec.Command(os.Args[0])
	writer.Env, writer.Stderr = append(os.Environ(), writerOf+"="+path), os.Stderr
	stop, err := writer.StdinPipe()
	g.Expect(err).NotTo(HaveOccurred())
	says, err := writer.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(writer.Start()).To(Succeed())
	t.Cleanup(func() {
		_ = stop.Close()
		g.Expect(writer.Wait()).To(Succeed(), "it was never kept from writing")
	})
	line, err := bufio.NewReader(says).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(line).To(Equal("writing\n"))
}

const (
	together = "SELECT COUNT(DISTINCT said) FROM (SELECT said FROM server UNION ALL SELECT said FROM target)"
	number   = "SELECT said FROM server"
)

func TestADatabaseIsCopiedAsItIsAtOneMomentWhileItIsWritten(t *testing.T) {
	g, path := NewWithT(t), make5(t)
	written(t, path)
	seen := map[string]bool{}
	for range 20 {
		content, err := database.Copy(t.Context(), path, t.TempDir(), 1<<20)
		g.Expect(err).NotTo(HaveOccurred())
		said, err := database.Ask(t.Context(), content, t.TempDir(), map[string]string{"together": together, "number": number, "version": "PRAGMA user_version"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(said["together"]).To(Equal([][]string{{"1"}}), "no transaction is there by half")
		g.Expect(said["version"]).To(Equal([][]string{{"5"}}))
		seen[said["number"][0][0]] = true
	}
	g.Expect(len(seen)).To(BeNumerically(">", 1), "it was written meanwhile")
}

func TestACopyOfADatabaseIncludesItsLog(t *testing.T) {
	g, path := NewWithT(t), make5(t)
	service, err := writable(path)
	g.Expect(err).NotTo(HaveOccurred())
	defer service.Close()
	before, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = service.Exec("UPDATE server SET said = 7")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.ReadFile(path)).To(Equal(before), "the file alone does not have it")
	work := t.TempDir()
	content, err := database.Copy(t.Context(), path, work, 1<<20)
	g.Expect(err).NotTo(HaveOccurred())
	said, err := database.Ask(t.Context(), content, work, map[string]string{"number": number, "nothing": "SELECT more FROM target ORDER BY id"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(said).To(Equal(map[string][][]string{"number": {{"7"}}, "nothing": {{""}, {""}}}))
	g.Expect(os.ReadDir(work)).To(BeEmpty(), "nothing is left")
	_, err = service.Exec("UPDATE server SET said = 8")
	g.Expect(err).NotTo(HaveOccurred())
}

func TestACopyOfADatabaseIsRefusedWhen(t *testing.T) {
	path := make5(t)
	good, err := database.Copy(t.Context(), path, t.TempDir(), 1<<20)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	const page = 4096
	for name, c := range map[string]struct {
		change func(content []byte) []byte
		query  string
		says   string
	}{
		"it is none":            {func([]byte) []byte { return []byte("something else") }, number, "not a database"},
		"it is empty":           {func([]byte) []byte { return nil }, number, "no such table"},
		"its end is missing":    {func(b []byte) []byte { return b[:len(b)-page] }, number, "the database"},
		"a page is zeros":       {func(b []byte) []byte { copy(b[len(b)-page:], make([]byte, page)); return b }, number, "the database"},
		"a table is missing":    {func(b []byte) []byte { return b }, "SELECT 1 FROM pools", "does not say its number: SQL logic error: no such table: pools"},
		"an index is not right": {func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, number, "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := database.Ask(t.Context(), c.change(bytes.Clone(good)), t.TempDir(), map[string]string{"number": c.query})
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
}

func TestACopyThatContradictsItselfIsRefused(t *testing.T) {
	g, path := NewWithT(t), make5(t)
	db, err := sql.Open("sqlite", path) // this connection does not enforce references
	g.Expect(err).NotTo(HaveOccurred())
	_, err = db.Exec("DELETE FROM server")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(db.Close()).To(Succeed())
	content, err := database.Copy(t.Context(), path, t.TempDir(), 1<<20)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = database.Ask(t.Context(), content, t.TempDir(), nil)
	g.Expect(err).To(MatchError(ContainSubstring("the database is damaged (PRAGMA foreign_key_check): target 101 server 0; target 102 server 0")))
}

func TestOnlyADatabaseIsCopied(t *testing.T) {
	g, path := NewWithT(t), make5(t)
	_, err := database.Copy(t.Context(), path+"-none", t.TempDir(), 1<<20)
	g.Expect(err).To(MatchError(ContainSubstring("service.sqlite-none")))
	g.Expect(path + "-none").NotTo(BeAnExistingFile())
	_, err = database.Copy(t.Context(), path, t.TempDir(), 4096)
	g.Expect(err).To(MatchError(ContainSubstring("more than 0 MiB are not copied")))
}
