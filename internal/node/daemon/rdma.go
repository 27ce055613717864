package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parallelfs.dev/operator/internal/node/spec"
)

// rdmaDevices is where the kernel's InfiniBand and RoCE drivers have their devices: uverbs<n> of each adapter, and rdma_cm, by which
// connections are made (Linux, Documentation/infiniband/user_verbs.rst; librdmacm, rdma_cm(7)).
const (
	rdmaDevices = "/dev/infiniband"
	rdmaAdapter = "uverbs*"
	rdmaManager = "rdma_cm"
)

// openAdapters opens each device of a directory that RDMA needs, and closes it again. It returns the opened adapters, and why a daemon
// could not use RDMA: a device that is listed may still be one that the container must not open.
func openAdapters(directory string) (opened []string, why error) {
	found, err := filepath.Glob(filepath.Join(directory, rdmaAdapter))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the container has no device %s", filepath.Join(directory, rdmaAdapter))
	}
	slices.Sort(found)
	var refused []error
	for _, device := range found {
		if err := tryOpen(device); err != nil {
			refused = append(refused, err)
		} else {
			opened = append(opened, filepath.Base(device))
		}
	}
	if len(opened) == 0 {
		return nil, refused[0]
	}
	return opened, tryOpen(filepath.Join(directory, rdmaManager))
}

func tryOpen(device string) error {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the container has no device %s", device)
	case err != nil:
		if cause, is := errors.AsType[*fs.PathError](err); is {
			err = cause.Err
		}
		return fmt.Errorf("the container may not open %s (%w)", device, err)
	}
	return f.Close()
}

// adapters has the devices of RDMA adapters opened, and says in the log what was found. It is an error only for a daemon that must not
// start without them.
func adapters(config spec.Run, host Host) (string, error) {
	if config.RDMA == "" {
		return "", nil
	}
	opened, err := host.OpenAdapters()
	switch {
	case err == nil:
		return "opened the devices of RDMA adapters: " + strings.Join(opened, ", "), nil
	case config.RDMA == spec.RDMARequired:
		return "", fmt.Errorf("RDMA is required, and %w: load the adapter's driver on the node, check the resource of its device plugin, "+
			"or do not require RDMA", err)
	default:
		return fmt.Sprintf("the daemon uses TCP, because %s", err), nil
	}
}
