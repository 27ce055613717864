// Package nodefacts reads nodes: their addresses, their failure domains, and the fields of the spec that select them.
package nodefacts
