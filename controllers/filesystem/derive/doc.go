// Package derive sets conditions of a FileSystem from what was read, and makes a status small enough. It reads and writes nothing else.
package derive
