// Package decisions holds what the controller and the preview ask of a backend in the same way.
package decisions
