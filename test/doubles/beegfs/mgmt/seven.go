package mgmt

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"parallelfs.dev/operator/test/doubles/beegfs/disk"
	"parallelfs.dev/operator/test/doubles/beegfs/option"
	"parallelfs.dev/operator/test/doubles/beegfs/program"
	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// Seven runs beegfs-mgmtd 7 until it is asked to end, and returns its exit code.
func Seven(ctx context.Context, arguments []string, output, errors io.Writer) int {
	fail := func(err error) int { return program.Fail(errors, err, "Management Node", "beegfs-mgmtd.conf") }
	values, err := option.Daemon(option.Management(), arguments)
	if err != nil {
		return fail(err)
	}
	filters, err := option.Interfaces(values)
	if err != nil {
		return fail(err)
	}
	secret, err := option.Secret(7, values)
	if err != nil {
		return fail(err)
	}
	if err := program.Daemonize(values); err != nil {
		return fail(err)
	}
	directory := values["storeMgmtdDirectory"]
	lock, err := openDirectory(values, directory, errors)
	if err != nil {
		return fail(err)
	}
	defer lock.Close()
	log, err := program.NewLog(values, output)
	if err != nil {
		return fail(err)
	}
	if _, err := disk.Format(directory, 4, 5); err != nil {
		return fail(err)
	}
	alias, err := disk.Alias(directory)
	if err != nil {
		return fail(err)
	}
	if err := disk.Origin(directory, alias); err != nil {
		return fail(err)
	}
	content, err := loadDirectory(directory)
	if err != nil {
		return fail(&option.Error{Text: "Unable to load stored state: " + err.Error()})
	}
	tcp, udp, err := option.Ports(7, values, "Mgmtd", 8008)
	if err != nil {
		return fail(err)
	}
	usable := wire.Usable(7, filters)
	if len(usable) == 0 {
		return fail(&option.Error{Text: "Couldn't find any usable NIC"})
	}
	state := newState(rulesOfSeven(values), content, func(next stored) error { return saveDirectory(directory, next) }, nil)
	state.content.Nodes = replaceManagement(state.content.Nodes, wire.Node{
		Type: "management", ID: 1, Alias: alias, TCP: tcp, UDP: udp, Interfaces: usable,
	})
	return serveSeven(ctx, log, state, usable, tcp, udp, secret)
}

func openDirectory(values option.Values, directory string, errors io.Writer) (*os.File, error) {
	if directory == "" {
		return nil, &option.Error{Text: "No management storage directory specified"}
	}
	if !filepath.IsAbs(directory) {
		return nil, &option.Error{Text: "Path to storage directory must be absolute: " + directory}
	}
	if !disk.Prepared(directory) {
		if !values.Bool("storeAllowFirstRunInit", true) {
			return nil, &option.Error{Text: "Storage directory not initialized and initialization has been disabled: " + directory}
		}
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return nil, &option.Error{Text: "Unable to create mgmt storage directory: " + directory}
		}
		if err := os.WriteFile(filepath.Join(directory, disk.FormatFile), []byte("version=5\n"), 0o600); err != nil {
			return nil, &option.Error{Text: "Unable to create storage format file in: " + directory}
		}
	}
	lock, err := disk.Lock(directory)
	if err != nil {
		disk.TellLocked(errors, directory)
		return nil, &option.Error{Text: "Invalid working directory: locking failed"}
	}
	return lock, nil
}

func rulesOfSeven(values option.Values) Rules {
	limits := func(role, space, emergency string) Limits {
		return Limits{
			SpaceLow:        values.Bytes("tune"+role+"SpaceLowLimit", space),
			SpaceEmergency:  values.Bytes("tune"+role+"SpaceEmergencyLimit", emergency),
			InodesLow:       values.Bytes("tune"+role+"InodesLowLimit", "10M"),
			InodesEmergency: values.Bytes("tune"+role+"InodesEmergencyLimit", "1M"),
		}
	}
	return Rules{
		Major: 7, OfflineTimeout: time.Duration(values.Int("sysTargetOfflineTimeoutSecs", 180)) * time.Second,
		NewServers: values.Bool("sysAllowNewServers", true), NewTargets: values.Bool("sysAllowNewTargets", true),
		MetaLimits: limits("Meta", "10G", "3G"), TargetLimit: limits("Storage", "1T", "20G"),
	}
}

// replaceManagement adds the service itself to the servers.
func replaceManagement(nodes []wire.NodeView, own wire.Node) []wire.NodeView {
	for i := range nodes {
		if nodes[i].Type == "management" {
			nodes[i].Node = own
			return nodes
		}
	}
	return append(nodes, wire.NodeView{Node: own, UID: 1})
}

func serveSeven(ctx context.Context, log *program.Log, state *State, usable []wire.Interface, tcp, udp int, secret uint64) int {
	ctx, stop := program.UntilSignal(ctx)
	defer stop()
	datagrams, err := wire.ListenUDP(ctx, udp)
	if err != nil {
		return log.PortInUse(err)
	}
	defer datagrams.Close()
	log.Say(3, "DGramLis", "Listening for UDP datagrams: any Port %d", udp)
	listener, err := wire.ListenTCP(ctx, tcp)
	if err != nil {
		return log.PortInUse(err)
	}
	defer listener.Close()
	log.Say(3, "StreamLis", "Listening for TCP connections: Port %d", tcp)
	version, _ := program.Version()
	log.Say(1, "App", "Version: %s", version)
	log.Interfaces(usable)
	go serveState(listener, log, state, secret, true)
	<-ctx.Done()
	log.Say(1, "App.cpp:912", "Received a signal SIGTERM. Clean shutdown initiated. Send another one to shutdown immediately.")
	stop() // a second signal ends the process at once
	if len(state.View().Groups) > 0 {
		wait := state.rules.OfflineTimeout
		log.Say(3, "App.cpp:837", "Shutdown in progress: Buddy groups frozen - waiting for clients to acknowledge. Timeout (sec): %.0f",
			wait.Seconds())
		<-time.After(wait)
	}
	log.Say(1, "App", "All components stopped. Exiting now!")
	return 0
}

func serveState(listener net.Listener, log *program.Log, state *State, secret uint64, administrators bool) {
	wire.Serve(listener, secret, func(peer string) {
		log.Say(2, "AuthenticateChannel incoming", "Peer sent wrong authentication: %s", peer)
		log.Say(3, "Work (process incoming data)", "Rejecting message from unauthenticated peer: %s", peer)
	}, func(op string, body json.RawMessage) (any, error) { return state.answer(log, op, body, administrators) })
}

func loadDirectory(directory string) (stored, error) {
	content := fresh("", "Default")
	err := disk.Load(filepath.Join(directory, memoryFile), &content)
	return content, err
}

func saveDirectory(directory string, content stored) error {
	if err := disk.Save(filepath.Join(directory, memoryFile), content); err != nil {
		return err
	}
	return writeStore(directory, content)
}
