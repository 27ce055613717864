package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"parallelfs.dev/operator/internal/node/export"
)

func exportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "export --files DIR [--to DIR] [--s3-endpoint URL --s3-bucket B --s3-credentials DIR]",
		Short: "Write the results of a benchmark to a directory, or put them to an object store, or both",
		Long: `Write the results of a benchmark to a directory, or put them to an object store that speaks S3, or both.

All files of --files are exported; one whose name ends with .gz is unpacked first and loses that ending, so results.json.gz becomes
results.json. Subdirectories, and names that begin with a dot, are left alone: a mounted ConfigMap has such.

Files appear in --to whole or not at all, replace those of the same name, and the directory is made where it is missing. Objects are
<prefix>/<file>; the bucket must exist. The directory of the credentials is a mounted Secret with the files accessKey and
secretKey, which are shown to nobody, and ca.crt where the store's certificate is of an authority of your own. A store that does not answer,
or has too much to do, is asked again for half a minute; one that refuses is not.

The exit code is 0 when all files are everywhere, and 1 after a sentence that says which are not and why. To try again does no harm.`,
		Example: `  node export --files /results --to /claim/measurements/scratch-creates-1b4e28ba
  node export --files /results --s3-endpoint https://s3.example.org:9000 --s3-bucket benchmarks \
    --s3-prefix lab/scratch-creates-1b4e28ba --s3-credentials /credentials`,
		Args: cobra.NoArgs,
	}
	var o export.Options
	flags := c.Flags()
	flags.StringVar(&o.Files, "files", "", "`DIR` of the files, a mounted ConfigMap")
	flags.StringVar(&o.To, "to", "", "`DIR` to write them to, on a mounted volume; it is made")
	flags.StringVar(&o.S3.Endpoint, "s3-endpoint", "", "`URL` of the object store, such as https://s3.example.org:9000")
	flags.StringVar(&o.S3.Bucket, "s3-bucket", "", "`NAME` of the bucket, which must exist")
	flags.StringVar(&o.S3.Prefix, "s3-prefix", "", "`PREFIX` of the objects' keys")
	flags.StringVar(&o.S3.Region, "s3-region", "", "`REGION` of the bucket, where the store has any")
	flags.StringVar(&o.S3.Credentials, "s3-credentials", "", "`DIR` of the files accessKey and secretKey, a mounted Secret")
	flags.DurationVar(&o.Timeout, "timeout", 5*time.Minute, "`DURATION` after which it gives up")
	c.RunE = func(c *cobra.Command, _ []string) error {
		exported, err := export.Run(c.Context(), o)
		for _, line := range exported {
			if _, err := fmt.Fprintln(c.OutOrStdout(), line); err != nil {
				return err
			}
		}
		return err
	}
	return c
}
