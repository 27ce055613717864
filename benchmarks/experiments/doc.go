// Package experiments holds published experiments as manifests, one directory each. Tests check that each manifest expresses its whole
// experiment, and an overlay makes the experiments small enough for a test cluster.
package experiments
