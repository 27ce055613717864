// Package program holds the common parts of all server doubles: the log, the messages about a wrong configuration, and the end.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"parallelfs.dev/operator/test/doubles/beegfs/option"
	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// VersionVariable is the environment variable with a double's version.
const VersionVariable = "BEEGFS_DOUBLE_VERSION"

// Version returns the version of a double, by default 7.4.6, and its major number.
func Version() (version string, major int) {
	version = os.Getenv(VersionVariable)
	if version == "" {
		version = "7.4.6"
	}
	_, _ = fmt.Sscanf(version, "%d", &major)
	return version, major
}

// Exit codes of the servers and of beegfs-ctl (common/app/AbstractApp.h, 7.4.6).
const (
	InvalidConfig  = 1
	Initialization = 2
	Runtime        = 3
)

// Fail prints what is wrong with a configuration like the servers, and returns the exit code. title is such as "Metadata Node", and file
// the name of the configuration file.
func Fail(output io.Writer, err error, title, file string) int {
	if auth, is := errors.AsType[*option.AuthError](err); is {
		fmt.Fprintf(output, "\nUnrecoverable error: %s\n\n", auth.Text)
		return Runtime
	}
	version, _ := Version()
	fmt.Fprintf(output, "\nError: %s\n\n[BeeGFS %s Version: %s\nRefer to the default config file (/etc/beegfs/%s)\n"+
		"or visit http://www.beegfs.com to find out about configuration options.]\n\n", err, title, version, file)
	return InvalidConfig
}

// Log is a server's log: to standard output, or to the file in logStdFile.
type Log struct {
	mutex  sync.Mutex
	writer io.Writer
	level  int
}

// NewLog opens a log; a path that is not absolute is refused.
func NewLog(values option.Values, standard io.Writer) (*Log, error) {
	log := &Log{writer: standard, level: values.Int("logLevel", 3)}
	path := values["logStdFile"]
	if path == "" {
		return log, nil
	}
	if !filepath.IsAbs(path) {
		return nil, &option.Error{Text: "Path to log file must be absolute"}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, &option.Error{Text: fmt.Sprintf("Failed to open log file: %s", path)}
	}
	log.writer = file
	return log, nil
}

// Say writes a line unless its level is above the configured one; who is the component that writes it.
func (l *Log) Say(level int, who, format string, arguments ...any) {
	if level > l.level {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	fmt.Fprintf(l.writer, "(%d) %s Main [%s] >> %s\n", level, time.Now().Format(time.TimeOnly), who, fmt.Sprintf(format, arguments...))
}

// PortInUse logs a port that could not be bound like the servers, and returns the exit code.
func (l *Log) PortInUse(err error) int {
	if port, is := errors.AsType[*wire.PortError](err); is {
		who, socket := "ConnAccept", "TCP socket"
		if port.Protocol == "UDP" {
			who, socket = "DGramLis", "UDP socket"
		}
		l.Say(0, who, "%s: Unable to bind to port: %d. SysErr: %s", socket, port.Port, option.SysErr(port.Err))
	}
	l.Say(0, "App", "Unable to initialize socket")
	l.Say(1, "App", "A hard error occurred. Shutting down...")
	return Initialization
}

// Interfaces logs the interfaces that a server publishes.
func (l *Log) Interfaces(usable []wire.Interface) {
	names := make([]string, len(usable))
	for i, card := range usable {
		names[i] = card.Name + "(TCP) "
	}
	l.Say(2, "App", "Usable NICs: %s", strings.Join(names, ""))
}

// UntilSignal returns a context that ends at the first SIGTERM or SIGINT.
func UntilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(parent, syscall.SIGTERM, syscall.SIGINT)
}

// Daemonize refuses to run in the background, because that would end the container.
func Daemonize(values option.Values) error {
	if values.Bool("runDaemonized", false) {
		return &option.Error{Text: "runDaemonized is not supported by this double: the program would leave its container"}
	}
	return nil
}
