//go:build envtest

// Package envtest_test holds what the API server accepts and refuses, and the sentence that a user then gets.
package envtest_test

import (
	"testing"

	"parallelfs.dev/operator/test/envtest/apiserver"
)

var server *apiserver.Server

func TestMain(m *testing.M) { apiserver.Run(m, &server, apiserver.WithMPIJob()) }

func TestX(t *testing.T) { server.Namespace(t.Context(), t) }
