// Package experiments holds published experiments as manifests, one directory each, the tests that each expresses its experiment whole,
// and the overlay that makes them small enough for a test cluster.
package experiments
