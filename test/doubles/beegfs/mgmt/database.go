package mgmt

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"

	_ "modernc.org/sqlite" // the driver with that name

	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// schemaVersion is the schema version of 8.3.1, in the header of the database (user_version).
const schemaVersion = 5

// The tables have the names and columns of 8.3.1 that any reader of a store uses. The double starts only from its own table, which holds
// its whole state.
const schema = `
CREATE TABLE beegfs_double (content TEXT NOT NULL) STRICT;
CREATE TABLE config (key TEXT PRIMARY KEY, value ANY NOT NULL) STRICT;
CREATE TABLE entities (uid INTEGER PRIMARY KEY AUTOINCREMENT, entity_type INTEGER NOT NULL, alias TEXT UNIQUE NOT NULL) STRICT;
CREATE TABLE nodes (node_uid INTEGER PRIMARY KEY REFERENCES entities (uid), node_type INTEGER NOT NULL, node_id INTEGER NOT NULL,
  port INTEGER NOT NULL, UNIQUE (node_type, node_id)) STRICT;
CREATE TABLE pools (pool_uid INTEGER PRIMARY KEY REFERENCES entities (uid), node_type INTEGER NOT NULL, pool_id INTEGER,
  UNIQUE (node_type, pool_id)) STRICT;
CREATE TABLE targets (target_uid INTEGER PRIMARY KEY REFERENCES entities (uid), node_type INTEGER NOT NULL, target_id INTEGER NOT NULL,
  node_id INTEGER, pool_id INTEGER, free_space INTEGER, UNIQUE (node_type, target_id),
  FOREIGN KEY (node_type, node_id) REFERENCES nodes (node_type, node_id),
  FOREIGN KEY (node_type, pool_id) REFERENCES pools (node_type, pool_id)) STRICT;
CREATE TABLE buddy_groups (group_uid INTEGER PRIMARY KEY REFERENCES entities (uid), node_type INTEGER NOT NULL, group_id INTEGER,
  p_target_id INTEGER NOT NULL, s_target_id INTEGER NOT NULL, UNIQUE (node_type, group_id),
  FOREIGN KEY (node_type, p_target_id) REFERENCES targets (node_type, target_id),
  FOREIGN KEY (node_type, s_target_id) REFERENCES targets (node_type, target_id)) STRICT;
CREATE TABLE root_inode (target_id INTEGER, group_id INTEGER) STRICT;
`

// Numbers of the types in the tables.
var (
	typesOfNodes                                      = map[string]int{"meta": 1, "storage": 2, "client": 3, "management": 4}
	entityNode, entityTarget, entityPool, entityGroup = 1, 2, 3, 4
)

// database is the store of 8, which its service writes in WAL mode.
type database struct{ *sql.DB }

func openDatabase(file string) (database, error) {
	uri := url.URL{Scheme: "file", Path: file, RawQuery: url.Values{"mode": {"rw"}, "_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(30000)", "foreign_keys(1)", "journal_mode(wal)", "synchronous(full)",
	}}.Encode()}
	db, err := sql.Open("sqlite", uri.String())
	if err != nil {
		return database{}, err
	}
	db.SetMaxOpenConns(1)
	return database{db}, nil
}

// createDatabase creates the store once.
func createDatabase(file string, content stored) (err error) {
	made, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := made.Close(); err != nil {
		return err
	}
	d, err := openDatabase(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if _, err := d.Exec(schema + fmt.Sprintf("PRAGMA user_version = %d;", schemaVersion)); err != nil {
		return err
	}
	content.Nodes = replaceManagement(content.Nodes, wire.Node{Type: "management", ID: 1, Alias: "management"})
	return d.save(content)
}

// load returns the double's whole state. It refuses the same faults as the service.
func (d database) load() (content stored, err error) {
	var version int
	if err := d.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return content, err
	}
	if version != schemaVersion {
		//nolint:staticcheck // the service's own text
		return content, fmt.Errorf("Database schema version %d is outside of the valid range (1 to %d)", version, schemaVersion)
	}
	var text string
	if err := d.QueryRow("SELECT content FROM beegfs_double").Scan(&text); err != nil {
		return content, err
	}
	err = json.Unmarshal([]byte(text), &content)
	return content, err
}

// save writes everything again in one transaction.
func (d database) save(content stored) (err error) {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	tx, err := d.Begin()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		} else {
			err = tx.Commit()
		}
	}()
	do := func(query string, values ...any) {
		if err == nil {
			_, err = tx.Exec(query, values...)
		}
	}
	do("PRAGMA defer_foreign_keys = ON")
	for _, table := range []string{"beegfs_double", "config", "root_inode", "buddy_groups", "targets", "pools", "nodes", "entities"} {
		do("DELETE FROM " + table)
	}
	do("INSERT INTO beegfs_double VALUES (?)", string(text))
	do("INSERT INTO config VALUES ('fs_uuid', ?)", content.FsUUID)
	entity := func(uid, kind int, alias string) { do("INSERT INTO entities VALUES (?, ?, ?)", uid, kind, alias) }
	for i := range content.Nodes {
		n := &content.Nodes[i]
		entity(n.UID, entityNode, n.Alias)
		do("INSERT INTO nodes VALUES (?, ?, ?, ?)", n.UID, typesOfNodes[n.Type], n.ID, n.TCP)
	}
	for _, p := range content.Pools {
		entity(p.UID, entityPool, p.Name)
		do("INSERT INTO pools VALUES (?, ?, ?)", p.UID, typesOfNodes["storage"], p.ID)
	}
	for i := range content.Targets {
		t := &content.Targets[i]
		entity(t.UID, entityTarget, t.Alias)
		var free any
		if t.Space != nil {
			free = t.Space.Free
		}
		do("INSERT INTO targets VALUES (?, ?, ?, ?, ?, ?)", t.UID, typesOfNodes[t.Type], t.ID, orNull(t.Node), orNull(t.Pool), free)
	}
	for _, g := range content.Groups {
		entity(g.UID, entityGroup, g.Alias)
		do("INSERT INTO buddy_groups VALUES (?, ?, ?, ?, ?)", g.UID, typesOfNodes[g.Type], g.ID, g.Primary, g.Secondary)
	}
	switch {
	case content.Root != 0 && content.RootMirrored:
		do("INSERT INTO root_inode SELECT NULL, group_id FROM buddy_groups WHERE node_type = 1 AND ? IN (p_target_id, s_target_id)", content.Root)
	case content.Root != 0:
		do("INSERT INTO root_inode VALUES (?, NULL)", content.Root)
	}
	return err
}

func orNull(number int) any {
	if number == 0 {
		return nil
	}
	return number
}
