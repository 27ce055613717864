// Package exchange holds the forms in which programs exchange what they know of a filesystem: signed answers of probes, and the servers and
// targets that a probe expects.
package exchange
