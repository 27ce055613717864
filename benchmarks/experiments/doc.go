// Package experiments holds published experiments as manifests, and the test that each expresses its experiment whole.
package experiments
