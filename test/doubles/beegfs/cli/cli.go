// Package cli is the double of beegfs, the command-line tool of 8: the commands that the operator and its tests use, in the formats of
// 8.3.1, as tables and as JSON.
package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parallelfs.dev/operator/test/doubles/beegfs/option"
	"parallelfs.dev/operator/test/doubles/beegfs/program"
	"parallelfs.dev/operator/test/doubles/beegfs/tree"
	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// call is one run of beegfs with its global flags (ctl/internal/config/config.go, 8.3.1).
type call struct {
	output, errors io.Writer
	management     string
	mount          string
	tlsDisable     bool
	tlsUnverified  bool
	tlsCertificate string
	authDisable    bool
	authFile       string
	format         string
	columns        []string
	pageSize       uint
	raw, debug     bool
	emojis         bool
	secret         uint64
	view           wire.View
}

// Run runs beegfs and returns the exit code.
func Run(ctx context.Context, arguments []string, output, errs io.Writer) int {
	c := &call{output: output, errors: errs}
	root := c.root()
	root.SetArgs(arguments)
	root.SetOut(output)
	root.SetErr(errs)
	if err := root.ExecuteContext(ctx); err != nil {
		c.tell("Error: %s\n", err)
		return 1
	}
	return 0
}

const skipsLicense = "license.SkipWarnings"

func (c *call) root() *cobra.Command {
	root := &cobra.Command{
		Use: "beegfs", SilenceErrors: true, SilenceUsage: true, PersistentPreRunE: c.before, PersistentPostRunE: c.after,
	}
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return fmt.Errorf("%w\nUsage: %s --help", err, command.Use)
	})
	flags := root.PersistentFlags()
	flags.StringVar(&c.management, "mgmtd-addr", "auto", "")
	flags.StringVar(&c.mount, "mount", "auto", "")
	flags.BoolVar(&c.tlsDisable, "tls-disable", false, "")
	flags.BoolVar(&c.tlsUnverified, "tls-disable-verification", false, "")
	flags.StringVar(&c.tlsCertificate, "tls-cert-file", "/etc/beegfs/cert.pem", "")
	flags.BoolVar(&c.authDisable, "auth-disable", false, "")
	flags.StringVar(&c.authFile, "auth-file", "/etc/beegfs/conn.auth", "")
	flags.Var(&choice{value: &c.format, allowed: []string{"table", "json", "json-pretty", "ndjson"}}, "output", "")
	c.format = "table"
	flags.StringSliceVar(&c.columns, "columns", nil, "")
	flags.UintVar(&c.pageSize, "page-size", 100, "")
	flags.BoolVar(&c.raw, "raw", false, "")
	flags.BoolVar(&c.debug, "debug", false, "")
	flags.BoolVar(&c.emojis, "disable-emojis", false, "")
	flags.String("remote-addr", "127.0.0.1:9010", "")
	flags.Int("num-workers", 1, "")
	flags.Duration("conn-timeout", 500*time.Millisecond, "")
	flags.Int8("log-level", 0, "")
	version := &cobra.Command{
		Use: "version", Args: cobra.NoArgs, Annotations: map[string]string{skipsLicense: ""},
		Run: func(*cobra.Command, []string) {
			version, _ := program.Version()
			c.say("Version: %s | Commit unknown | Built: unknown\n", version)
		},
	}
	root.AddCommand(version, c.license(), c.health(), c.target(), c.node(), c.pool(), c.mirror(), c.entryCommands(), c.debugging())
	return root
}

// choice is a flag with a few values.
type choice struct {
	value   *string
	allowed []string
}

// String returns the value.
func (f *choice) String() string { return *f.value }

// Type names the kind of flag in a help text.
func (f *choice) Type() string { return "string" }

// Set refuses values that are not allowed.
func (f *choice) Set(text string) error {
	if !slices.Contains(f.allowed, text) {
		return fmt.Errorf("invalid value %q (valid values: %s)", text, strings.Join(f.allowed, ", "))
	}
	*f.value = text
	return nil
}

func (c *call) say(format string, arguments ...any) {
	fmt.Fprintf(c.output, format, arguments...)
}

// tell writes to standard error, which beegfs uses for everything except data.
func (c *call) tell(format string, arguments ...any) {
	fmt.Fprintf(c.errors, format, arguments...)
}

// before checks the flags and fetches the management service's whole state.
func (c *call) before(command *cobra.Command, _ []string) error {
	if os.Geteuid() != 0 {
		return errors.New("only root can use this command")
	}
	if command.Name() == "version" {
		return nil
	}
	if c.management == "auto" {
		return errors.New("unable to proceed without a working management node: unable to auto-configure the management address: BeeGFS " +
			"does not appear to be mounted, manually specify --mgmtd-addr <hostname|ip>:<grpc-port> for the file system to manage")
	}
	if !c.authDisable {
		content, err := os.ReadFile(c.authFile)
		if err != nil {
			return fmt.Errorf("unable to proceed without a working management node: couldn't read auth file at %q (non-default path): %w",
				c.authFile, err)
		}
		c.secret = option.Hash(content)
	}
	return c.ask(command.Context(), "view", nil, &c.view)
}

// ask sends a request to the management service; errors have the form of gRPC's.
func (c *call) ask(ctx context.Context, op string, argument, result any) error {
	dialer, err := c.dialer()
	if err != nil {
		return err
	}
	err = wire.AskBy(ctx, dialer, c.management, c.secret, op, argument, result)
	var refused *wire.RefusedError
	switch {
	case err == nil:
		return nil
	case isHandshake(err):
		return fmt.Errorf("rpc error: code = Unavailable desc = connection error: desc = \"transport: authentication handshake failed: %w\"",
			errors.Unwrap(err))
	case errors.As(err, &refused) && strings.Contains(refused.Text, " Feature ") && strings.HasSuffix(refused.Text, " unavailable."):
		return fmt.Errorf("rpc error: code = Unauthenticated desc = %s", refused.Text)
	case errors.As(err, &refused):
		return fmt.Errorf("rpc error: code = Unknown desc = %s", refused.Text)
	case errors.Is(err, wire.ErrDisconnected):
		return errors.New("rpc error: code = Unauthenticated desc = Invalid auth secret (or TLS on the server only)")
	}
	return fmt.Errorf("rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while dialing: %w\"", err)
}

// dialer connects as NewClientConn does (common/beegfs/beegrpc/grpc.go, 8.3.1). The certificates of the file are trusted besides those of
// the system. The host of the address is the name that the server has to prove.
func (c *call) dialer() (wire.Dialer, error) {
	if c.tlsDisable {
		return &net.Dialer{}, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("couldn't load system cert pool: %w", err)
	}
	if c.tlsCertificate != "" {
		content, err := os.ReadFile(c.tlsCertificate)
		if err != nil {
			return nil, fmt.Errorf("unable to proceed without a working management node: reading certificate file failed: %w (hint: run "+
				"'beegfs --help' and review the options to configure TLS)", err)
		}
		if !pool.AppendCertsFromPEM(content) {
			return nil, errors.New("unable to proceed without a working management node: appending provided certificate to pool failed")
		}
	}
	return &tls.Dialer{Config: &tls.Config{RootCAs: pool, InsecureSkipVerify: c.tlsUnverified}}, nil
}

// isHandshake reports whether TLS itself failed.
func isHandshake(err error) bool {
	_, unverified := errors.AsType[*tls.CertificateVerificationError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	return unverified || plain
}

// after warns about a missing license, as 8.3 does after every command.
func (c *call) after(command *cobra.Command, _ []string) error {
	if _, skips := command.Annotations[skipsLicense]; skips || c.view.License {
		return nil
	}
	if strings.Contains(c.view.LicenseText, "library not loaded") {
		return fmt.Errorf("unable to verify licensed status: rpc error: code = Unknown desc = %s", c.view.LicenseText)
	}
	c.tell("WARNING: this system does not have a valid license installed.\n"+
		"To avoid disruptions, run 'beegfs license' and follow the required steps.\nReason: %s\n", c.view.LicenseText)
	return nil
}

func (c *call) license() *cobra.Command {
	var reload, get bool
	command := &cobra.Command{
		Use: "license", Args: cobra.NoArgs, Annotations: map[string]string{skipsLicense: ""},
		RunE: func(*cobra.Command, []string) error {
			if !c.view.License {
				if !strings.Contains(c.view.LicenseText, "library not loaded") {
					c.say("The system does not appear to have a valid community or enterprise license certificate loaded.\n\n")
				}
				return errors.New(c.view.LicenseText)
			}
			features := []string{"io.beegfs.mirroring", "io.beegfs.storagepool"}
			if strings.HasPrefix(c.format, "json") {
				return c.json(map[string]any{
					"result": 2, "serial": "double", "data": map[string]any{"type": 3, "common_name": "double", "dns_names": features},
				})
			}
			c.say("BeeGFS Enterprise License Certificate double\n\nLicensed enterprise functionality:\n  - %s\n", strings.Join(features, "\n  - "))
			return nil
		},
	}
	command.Flags().BoolVar(&reload, "reload", false, "")
	command.Flags().BoolVar(&get, "get", false, "")
	return command
}

// tree walks the directories. It requires --mount none with paths of the filesystem, because this machine has no BeeGFS mounted.
func (c *call) tree() (*tree.Tree, error) {
	if c.mount != "none" {
		return nil, errors.New("unable to get a valid BeeGFS client: no BeeGFS is mounted (use --mount none to work on paths of an unmounted one)")
	}
	return &tree.Tree{View: &c.view, Ask: func(ctx context.Context, node *wire.NodeView, op string, argument, result any) error {
		return tree.Ask(ctx, c.secret, node, op, argument, result)
	}}, nil
}
