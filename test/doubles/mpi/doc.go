// Package mpi holds the common code of the doubles of mdtest and IOR. Its test runs them against the product's parsers, and against the
// real programs if available.
package mpi
