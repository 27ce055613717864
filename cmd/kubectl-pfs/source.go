package main

import (
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fromFlag adds --from to a command that can read a support bundle.
func fromFlag(cmd *cobra.Command, from *string) {
	cmd.Flags().StringVar(from, "from", "", "read a support bundle (kubectl pfs dump) instead of a cluster")
}

// reader reads a cluster, or a support bundle if from names one.
func (a *app) reader(from string) (client.Reader, string, error) {
	if from != "" {
		b, err := openBundle(from)
		if err != nil {
			return nil, "", err
		}
		a.now = func() time.Time { return b.taken } // ages are relative to the time of the bundle
		if a.cluster.namespace != "" {
			return b, a.cluster.namespace, nil
		}
		return b, b.namespace, nil
	}
	c, err := a.connect(a.cluster)
	return c.Client, c.namespace, err
}
