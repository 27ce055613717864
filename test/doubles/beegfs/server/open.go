package server

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// forget is the time after which a silent client counts as gone, which the management service reports to servers after a while.
const forget = 10 * time.Second

// openFiles holds the numbers of open files that clients report.
type openFiles struct {
	mutex   sync.Mutex
	clients map[int]told
}

type told struct {
	files int
	when  time.Time
}

func (o *openFiles) tell(body json.RawMessage) error {
	var says wire.OpenFiles
	if err := json.Unmarshal(body, &says); err != nil {
		return err
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.clients == nil {
		o.clients = map[int]told{}
	}
	o.clients[says.Client] = told{says.Files, time.Now()}
	return nil
}

func (o *openFiles) list() []wire.OpenFiles {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	out := []wire.OpenFiles{}
	for client, t := range o.clients {
		if time.Since(t.when) < forget {
			out = append(out, wire.OpenFiles{Client: client, Files: t.files})
		}
	}
	slices.SortFunc(out, func(a, b wire.OpenFiles) int { return a.Client - b.Client })
	return out
}
