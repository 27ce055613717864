// Package assign gives servers and targets their permanent numbers, and writes them into records that later passes only read.
package assign
