package mgmt

import (
	"encoding/json"
	"fmt"

	"parallelfs.dev/operator/test/doubles/beegfs/program"
	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// answer returns the service's response to a request: from servers always, from administrators on their own port.
func (s *State) answer(log *program.Log, op string, body json.RawMessage, administrators bool) (any, error) {
	switch op {
	case "view":
		return s.View(), nil
	case "register-node":
		var node wire.Node
		if err := json.Unmarshal(body, &node); err != nil {
			return nil, err
		}
		registered, err := s.registerNode(node)
		if err != nil {
			log.Say(2, "Node registration", "Node rejected because of %s. nodeID: %s; numID: %d; type: %s", err, node.Alias, node.ID, node.Type)
		}
		return registered, err
	case "reserve-target", "register-target":
		var target wire.Target
		if err := json.Unmarshal(body, &target); err != nil {
			return nil, err
		}
		if op == "reserve-target" {
			return nil, s.reserveTarget(target)
		}
		return nil, s.registerTarget(target)
	case "report":
		var report wire.Report
		if err := json.Unmarshal(body, &report); err != nil {
			return nil, err
		}
		return nil, s.report(report)
	case "target-state":
		var change wire.Change
		if err := json.Unmarshal(body, &change); err != nil {
			return nil, err
		}
		return nil, s.setState(change)
	}
	if !administrators {
		return nil, fmt.Errorf("unknown question %q", op)
	}
	var change wire.Change
	if err := json.Unmarshal(body, &change); err != nil {
		return nil, err
	}
	return s.administer(op, change)
}

// licensed maps the operations of 8 that need a license to their feature (mgmtd/grpc, 8.3.1).
var licensed = map[string]string{
	"add-pool": "Storagepool", "modify-pool": "Storagepool", "remove-pool": "Storagepool", "add-group": "Mirroring",
	"remove-group": "Mirroring", "mirror-root": "Mirroring",
	"start-resync": "Mirroring",
}

func (s *State) administer(op string, change wire.Change) (any, error) {
	if feature := licensed[op]; feature != "" && s.license != nil {
		if valid, text := s.license(); !valid {
			return nil, fmt.Errorf("%s Feature %s unavailable.", text, feature) //nolint:revive,staticcheck // the service's own text
		}
	}
	switch op {
	case "add-pool":
		return s.addPool(change)
	case "modify-pool":
		return s.modifyPool(change)
	case "remove-pool":
		return s.removePool(change)
	case "remove-target":
		return s.removeTarget(change)
	case "remove-node":
		return s.removeNode(change)
	case "add-group":
		return s.addGroup(change)
	case "remove-group":
		return s.removeGroup(change)
	case "mirror-root":
		return nil, s.mirrorRoot()
	case "set-alias":
		return nil, s.setAlias(change)
	case "set-state", "start-resync":
		return nil, s.setState(change)
	}
	return nil, fmt.Errorf("unknown question %q", op)
}
