package moosefs

import (
	"errors"
	"net"

	"parallelfs.dev/operator/internal/backend"
)

// prober asks a master by mfscli(1).
type prober struct{ version, host, port string }

// NewProber says how the master of a version at host:port is asked for its state.
func NewProber(version, address string) backend.Prober {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return prober{version: version, host: host, port: port}
}

// Commands asks for the master, chunkservers, disks, metaloggers, sessions and storage classes.
func (p prober) Commands() [][]string {
	return [][]string{{"mfscli", "-j", "-H", p.host, "-P", p.port, "-SIN"}}
}

// Parse makes a State of the answers.
func (p prober) Parse(_ [][]byte) (backend.State, error) {
	return backend.State{}, errors.New("the answers of mfscli can't be read yet")
}
