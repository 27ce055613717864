// Package metadatajobs decides which Jobs back up, copy, check and recover metadata, from what is recorded and what their Jobs answered.
package metadatajobs
