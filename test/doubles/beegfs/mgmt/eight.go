package mgmt

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parallelfs.dev/operator/test/doubles/beegfs/option"
	"parallelfs.dev/operator/test/doubles/beegfs/program"
	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// LicenseWord must be in the text of a license file, in addition to being PEM, for the double to accept it.
const LicenseWord = "BEEGFS-DOUBLE-LICENSE"

// Eight runs beegfs-mgmtd 8 until it is asked to end, and returns its exit code.
func Eight(ctx context.Context, arguments []string, output, errs io.Writer) int {
	values, err := option.ReadEight(arguments)
	if usage, is := errors.AsType[*option.UsageError](err); is {
		fmt.Fprintf(errs, "error: %s\n\nUsage: beegfs-mgmtd [OPTIONS]\n\nFor more information, try '--help'.\n", usage.Text)
		return 2
	}
	if err == nil {
		err = runEight(ctx, values, output, errs)
	}
	if err != nil {
		fmt.Fprintln(errs, err)
		return 1
	}
	return 0
}

func runEight(ctx context.Context, values option.Values, output, errs io.Writer) error {
	file := values.Get("db-file", "/var/lib/beegfs/mgmtd.sqlite")
	if values.Bool("init", false) {
		return initialize(file, values["fs-uuid"], output)
	}
	if path, given := values["import-from-v7"]; given {
		return fmt.Errorf("this double imports nothing from %s", path)
	}
	if values.Bool("upgrade", false) {
		fmt.Fprintln(output, "--upgrade is deprecated. Upgrading the database now happens automatically on running the management. Exiting.")
		return nil
	}
	if _, err := os.Stat(file); err != nil {
		//nolint:staticcheck // the service's own text
		return fmt.Errorf("No accessible database file found at %q: %s (os error 2)\nIf you want to initialize a new system, refer to --help "+
			"or doc.beegfs.io.", file, option.SysErr(err))
	}
	var secret uint64
	if !values.Bool("auth-disable", false) {
		auth := values.Get("auth-file", "/etc/beegfs/conn.auth")
		content, err := os.ReadFile(auth)
		if err != nil {
			//nolint:staticcheck // the service's own text
			return fmt.Errorf("Could not open authentication file %q: %s (os error 2)", auth, option.SysErr(err))
		}
		secret = option.Hash(content)
	}
	store, err := openDatabase(file)
	if err != nil {
		return err
	}
	defer store.Close()
	content, err := store.load()
	if err != nil {
		return fmt.Errorf("%q: %w", file, err)
	}
	certificate, err := certificateOf(values)
	if err != nil {
		return err
	}
	rules, err := rulesOfEight(values)
	if err != nil {
		return err
	}
	log, err := program.NewLog(option.Values{}, errs)
	if err != nil {
		return err
	}
	license := licenseOf(values)
	state := newState(rules, content, store.save, license)
	return serveEight(ctx, log, values, state, secret, certificate)
}

// initialize creates the store once; an existing store is never touched.
func initialize(file, uuid string, output io.Writer) error {
	if _, err := os.Stat(file); err == nil {
		return fmt.Errorf("Database file %q already exists", file) //nolint:staticcheck // the service's own text
	}
	if uuid == "" {
		random := make([]byte, 16)
		_, _ = rand.Read(random)
		random[6], random[8] = random[6]&0x0f|0x40, random[8]&0x3f|0x80
		uuid = fmt.Sprintf("%x-%x-%x-%x-%x", random[:4], random[4:6], random[6:8], random[8:10], random[10:])
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("Creating database file %q failed: %w", file, err) //nolint:staticcheck // the service's own text
	}
	if err := createDatabase(file, fresh(uuid, "storage_pool_default")); err != nil {
		return fmt.Errorf("Creating database file %q failed: %w", file, err) //nolint:staticcheck // the service's own text
	}
	fmt.Fprintf(output, "Created new database version %d at %q.\n", schemaVersion, file)
	return nil
}

// certificateOf reads the certificate and the key of the gRPC at the start, as the service does; nil without TLS.
func certificateOf(values option.Values) (*tls.Config, error) {
	if values.Bool("tls-disable", false) {
		return nil, nil
	}
	var files [2][]byte
	for i, file := range [][2]string{{"tls-cert-file", "/etc/beegfs/cert.pem"}, {"tls-key-file", "/etc/beegfs/key.pem"}} {
		path := values.Get(file[0], file[1])
		content, err := os.ReadFile(path)
		if err != nil {
			//nolint:staticcheck // the service's own text
			return nil, fmt.Errorf("Could not read TLS file %q: %s", path, option.SysErr(err))
		}
		files[i] = content
	}
	pair, err := tls.X509KeyPair(files[0], files[1])
	if err != nil {
		return nil, fmt.Errorf("Could not use TLS files: %w", err) //nolint:staticcheck // as the service says it
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

func rulesOfEight(values option.Values) (Rules, error) {
	timeout, err := option.ParseDuration(values.Get("node-offline-timeout", "180s"))
	rules := Rules{Major: 8, OfflineTimeout: timeout, NewServers: !values.Bool("registration-disable", false)}
	rules.NewTargets = rules.NewServers
	limits := func(role, low, emergency string) Limits {
		read := func(key, otherwise string) uint64 {
			value, problem := option.Units(values.Get("cap-pool-"+role+"-limits."+key, otherwise))
			err = errors.Join(err, problem)
			return value
		}
		return Limits{
			SpaceLow: read("space-low", low), SpaceEmergency: read("space-emergency", emergency), InodesLow: read("inodes-low", "10M"),
			InodesEmergency: read("inodes-emergency", "1M"),
		}
	}
	rules.MetaLimits, rules.TargetLimit = limits("meta", "10Gi", "3Gi"), limits("storage", "512Gi", "10Gi")
	return rules, err
}

// licenseOf reads the license at the start. The official images contain the library that verifies it, but no license.
func licenseOf(values option.Values) func() (bool, string) {
	valid, text := false, "License verification library not loaded."
	if !values.Bool("license-disable", false) {
		content, err := os.ReadFile(values.Get("license-cert-file", "/etc/beegfs/license.pem"))
		block, _ := pem.Decode(content)
		switch {
		case err != nil:
			text = "Internal error during feature verification: no certificate loaded."
		case block == nil || !strings.Contains(string(content)+string(block.Bytes), LicenseWord):
			text = "The certificate is not valid."
		default:
			valid, text = true, ""
		}
	}
	return func() (bool, string) { return valid, text }
}

func serveEight(
	ctx context.Context, log *program.Log, values option.Values, state *State, secret uint64, certificate *tls.Config,
) error {
	ctx, stop := program.UntilSignal(ctx)
	defer stop()
	shift := values.Int("port-shift", 0)
	port, administration := values.Int("beemsg-port", 8008)+shift, values.Int("grpc-port", 8010)+shift
	filters := strings.Split(values["interfaces"], ",")
	if values["interfaces"] == "" {
		filters = nil
	}
	state.content.Nodes = replaceManagement(state.content.Nodes, wire.Node{
		Type: "management", ID: 1, Alias: "management", TCP: port, UDP: port, Interfaces: wire.Usable(8, filters),
	})
	state.contactSaved()
	datagrams, err := wire.ListenUDP(ctx, port)
	if err != nil {
		return fmt.Errorf("Address already in use (os error 98): %w", err) //nolint:staticcheck // the service's own text
	}
	defer datagrams.Close()
	listener, err := wire.ListenTCP(ctx, port)
	if err != nil {
		return fmt.Errorf("Address already in use (os error 98): %w", err) //nolint:staticcheck // the service's own text
	}
	defer listener.Close()
	grpc, err := wire.ListenTCP(ctx, administration)
	if err != nil {
		return fmt.Errorf("Address already in use (os error 98): %w", err) //nolint:staticcheck // the service's own text
	}
	defer grpc.Close()
	log.Say(2, "App", "Serving gRPC requests on port %d", administration)
	go serveState(listener, log, state, secret, false)
	if certificate != nil {
		grpc = tls.NewListener(grpc, certificate)
	}
	go serveState(grpc, log, state, secret, true)
	<-ctx.Done()
	log.Say(2, "App", "Shutting down")
	return nil
}

// contactSaved makes every target that was known before the start Probably-offline until its server reports.
func (s *State) contactSaved() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i := range s.content.Targets {
		target := &s.content.Targets[i]
		s.contact[contactKey{target.Type, target.ID}] = s.now().Add(-s.rules.OfflineTimeout/2 - time.Second)
	}
}
