package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// answer is the part of the output of "mfscli -j" of 4.57.5 and 4.59.2 that the operator reads.
type answer struct {
	Dataset struct {
		Info struct {
			General struct {
				Version string `json:"version"`
			} `json:"general"`
			Masters []struct {
				Version int64 `json:"metadata_version"`
			} `json:"masters"`
			Chunks *struct {
				// All holds the counts by the copies that chunks should have and have. Copies on disks that are marked for removal count.
				All     []cell `json:"allchunks"`
				Summary struct {
					All struct {
						Missing    int64 `json:"missing"`
						Endangered int64 `json:"endangered"`
						Undergoal  int64 `json:"undergoal"`
						Stable     int64 `json:"stable"`
					} `json:"allchunks"`
				} `json:"summary"`
				// ProgressStatus is 0 if the counts are valid; otherwise chunkservers are just coming or going.
				ProgressStatus int `json:"progress_status"`
			} `json:"chunks"`
		} `json:"info"`
		Chunkservers []struct {
			Connected bool     `json:"connected"`
			Version   string   `json:"version"`
			IP        string   `json:"ip"`
			Port      int32    `json:"port"`
			Labels    []string `json:"labels"`
			// Maintenance is "on" if maintenance mode was switched on, and "on (temp)" if it lasts until the chunkserver connects again.
			Maintenance  string `json:"maintenance_mode"`
			RegularUsed  int64  `json:"hdd_regular_used"`
			RegularTotal int64  `json:"hdd_regular_total"`
			RemovalUsed  int64  `json:"hdd_removal_used"`
			RemovalTotal int64  `json:"hdd_removal_total"`
		} `json:"chunkservers"`
		Metaloggers []struct {
			IP      string `json:"ip"`
			Version string `json:"version"`
		} `json:"metaloggers"`
		Disks []struct {
			IP     string   `json:"ip"`
			Port   int32    `json:"port"`
			Path   string   `json:"path"`
			Status []string `json:"status"`
			Used   int64    `json:"used"`
			Total  int64    `json:"total"`
			Chunks int64    `json:"chunks"`
		} `json:"disks"`
		Mounts []struct {
			Connected bool   `json:"connected"`
			IP        string `json:"ip"`
			Path      string `json:"mount_point"`
			Admin     bool   `json:"admin"`
			Version   string `json:"version"`
		} `json:"mounts"`
		StorageClasses []struct {
			Name  string                 `json:"sclassname"`
			Mode  string                 `json:"labels_mode_str"`
			Files int64                  `json:"files"`
			Times map[string]storageMode `json:"storage_modes"`
		} `json:"storage_classes"`
	} `json:"dataset"`
	// Errors holds sentences, or objects with a traceback of mfscli itself.
	Errors []json.RawMessage `json:"errors"`
}

// storageMode is the rule of a class for one time of a file's life.
type storageMode struct {
	Labels []struct {
		Definition string `json:"definition"`
	} `json:"labels_list"`
	// Distinct is the property in which the servers of the copies must differ, such as "[RACK]"; "-" for none.
	Distinct string `json:"uniqmask_str"`
}

// expression returns the form that the commands for storage classes take.
func (m storageMode) expression() string {
	var copies []string
	for _, l := range m.Labels {
		copies = append(copies, l.Definition)
	}
	if m.Distinct == "" || m.Distinct == "-" {
		return expression(copies)
	}
	return expression(copies) + "/" + m.Distinct
}

// cell counts the chunks that should have one number of copies, and have another. For an erasure-coded chunk, the number of copies is the
// number of parts that can be lost, plus one.
type cell struct {
	Target  string `json:"target"`
	Current string `json:"current"`
	Chunks  int64  `json:"chunks"`
}

// fewest returns the number of copies of the chunk with the fewest copies, 0 if a count can't be understood.
func fewest(cells []cell) int64 {
	var data backend.DataHealth
	for _, c := range cells {
		goal, err := strconv.ParseInt(c.Target, 10, 64)
		copies, wrong := strconv.ParseInt(c.Current, 10, 64)
		if err != nil || wrong != nil {
			return 0
		}
		count(&data, goal, copies, c.Chunks)
	}
	return data.Fewest
}

// parseJSON reads the answer of 4.x.
func parseJSON(output []byte) (backend.State, error) {
	if len(strings.TrimSpace(string(output))) == 0 {
		return backend.State{}, errors.New("it printed nothing, as it does when no master answers there")
	}
	var a answer
	if err := json.Unmarshal(output, &a); err != nil {
		return backend.State{}, fmt.Errorf("can't read its JSON: %w", err)
	}
	for _, e := range a.Errors {
		if !harmless(e) {
			return backend.State{}, fmt.Errorf("it reports %s", quote(string(e)))
		}
	}
	if a.Dataset.Info.General.Version == "" {
		return backend.State{}, errors.New("its JSON has no dataset.info.general.version")
	}
	return a.state(), nil
}

// harmless reports whether an error comes from mfscli 4.57.5 itself, which fails to list the chunkservers when all of them are
// disconnected. It then omits the list, which has the same meaning.
func harmless(e json.RawMessage) bool {
	var failed struct {
		Errors []string `json:"errors"`
	}
	return json.Unmarshal(e, &failed) == nil && len(failed.Errors) == 1 &&
		strings.Contains(failed.Errors[0], "NameError: name 'json_cs_array' is not defined")
}

func (a answer) state() backend.State {
	d := a.Dataset
	state := backend.State{Version: d.Info.General.Version, StorageClasses: map[string]string{}}
	if masters := d.Info.Masters; len(masters) == 1 {
		state.MetadataVersion = max(0, masters[0].Version)
	}
	if c := d.Info.Chunks; c != nil {
		state.Data = backend.DataHealth{
			Known:   c.ProgressStatus == 0,
			Missing: c.Summary.All.Missing, Endangered: c.Summary.All.Endangered,
			Undergoal: c.Summary.All.Undergoal, Stable: c.Summary.All.Stable,
		}
		state.Data.Fewest = fewest(c.All)
	}
	for _, s := range d.Chunkservers {
		state.Servers = append(state.Servers, backend.Server{
			Role: v1alpha1.RoleStorage, IP: s.IP, Port: s.Port, Online: s.Connected, Version: s.Version, Labels: s.Labels,
			UsedBytes: s.RegularUsed + s.RemovalUsed, CapacityBytes: s.RegularTotal + s.RemovalTotal, Maintained: s.Maintenance == "on",
		})
	}
	for _, m := range d.Metaloggers {
		state.Servers = append(state.Servers, backend.Server{Role: v1alpha1.RoleMetadataBackup, IP: m.IP, Online: true, Version: m.Version})
	}
	// A chunkserver that did not report its disks has one entry without a path, "server unreachable" or, since 4.57.7, "unknown (unreachable
	// chunkserver)".
	for _, t := range d.Disks {
		removing, ready := removal(t.Status)
		state.Targets = append(state.Targets, backend.Target{
			IP: t.IP, Port: t.Port, Path: t.Path, Online: online(t.Status), Status: strings.Join(t.Status, ", "),
			UsedBytes: t.Used, CapacityBytes: t.Total, Chunks: t.Chunks, Removing: removing, Removable: ready,
		})
	}
	state.Sessions = []backend.Session{}
	for _, m := range d.Mounts {
		state.Sessions = append(state.Sessions, backend.Session{
			IP: m.IP, Path: m.Path, Connected: m.Connected, Admin: m.Admin, Version: m.Version,
		})
	}
	for _, c := range d.StorageClasses {
		made := class{mode: c.Mode, others: map[string]string{}}
		for time, m := range c.Times {
			if time == "keep" {
				made.keep = m.expression()
			} else {
				made.others[time] = m.expression()
			}
		}
		state.StorageClasses[c.Name] = made.String()
		if c.Files > 0 {
			state.ClassesInUse = append(state.ClassesInUse, c.Name)
		}
	}
	return state
}

// quote shortens another program's output to a length that fits in a message.
func quote(said string) string {
	const most = 300
	if len(said) > most {
		said = said[:most] + "..."
	}
	return fmt.Sprintf("%q", said)
}
