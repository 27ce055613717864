// Package mpi holds what the doubles of mdtest and IOR share, and the test that holds them against the product's parsers, and against the
// real programs where those are.
package mpi
