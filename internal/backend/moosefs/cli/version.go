package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"parallelfs.dev/operator/internal/backend"
)

// AskVersion queries the master of a version at "host:port" for the version of its metadata, which counts its changes.
func AskVersion(version, address string) []string {
	host, port, _ := strings.Cut(address, ":")
	if strings.HasPrefix(version, "3.") {
		return []string{"mfscli", "-n", "-s", separator, "-H", host, "-P", port, "-SIM"}
	}
	return []string{"mfscli", "-n", "-j", "-H", host, "-P", port, "-SIM"}
}

// MetadataID formats the id of metadata as 4.x does in its log.
func MetadataID(id uint64) string { return fmt.Sprintf("%016X", id) }

// noMaster returns an error if the output means that mfscli reached no master. mfscli exits with code 0 in that case too.
func noMaster(output []byte) error {
	const most = 200
	return fmt.Errorf("mfscli names no master that works, as when none answers there: %q", output[:min(len(output), most)])
}

// ReadVersion parses the answer. 3.x does not print the id.
func ReadVersion(version string, output []byte) (backend.BackupVersion, error) {
	if strings.HasPrefix(version, "3.") {
		return versionInTable(output)
	}
	if len(bytes.TrimSpace(output)) == 0 {
		return backend.BackupVersion{}, noMaster(output)
	}
	var answer struct {
		Dataset struct {
			Info struct {
				Masters []struct {
					Version *int64 `json:"metadata_version"`
					ID      uint64 `json:"metadata_id"`
				} `json:"masters"`
			} `json:"info"`
		} `json:"dataset"`
	}
	if err := json.Unmarshal(output, &answer); err != nil {
		return backend.BackupVersion{}, fmt.Errorf("can't read what mfscli says of the master: %w", err)
	}
	masters := answer.Dataset.Info.Masters
	if len(masters) != 1 || masters[0].Version == nil || *masters[0].Version < 1 {
		return backend.BackupVersion{}, noMaster(output)
	}
	out := backend.BackupVersion{Version: *masters[0].Version}
	if masters[0].ID != 0 {
		out.ID = MetadataID(masters[0].ID)
	}
	return out, nil
}

// The table of masters of 3.0.117: address, version, state, local time, version of the metadata, and seven more.
const (
	masterTitle               = "metadata servers:"
	masterColumns, ofMetadata = 12, 4
)

// grouped parses a number whose digits the output groups, such as "1 135". It returns 0 for any other text.
func grouped(text string) int64 {
	n, err := strconv.ParseInt(strings.ReplaceAll(text, " ", ""), 10, 64)
	if err != nil {
		return 0
	}
	return max(0, n)
}

// versionInTable parses the table of masters of 3.0.117.
func versionInTable(output []byte) (backend.BackupVersion, error) {
	for line := range strings.Lines(string(output)) {
		row := strings.Split(strings.TrimRight(line, "\r\n"), separator)
		if row[0] != masterTitle {
			continue
		}
		if columns := len(row) - 1; columns != masterColumns {
			return backend.BackupVersion{}, fmt.Errorf(
				"a line of mfscli about masters has %d columns, and %d are known: %q", columns, masterColumns, line)
		}
		if version := grouped(row[1+ofMetadata]); version > 0 {
			return backend.BackupVersion{Version: version}, nil
		}
	}
	return backend.BackupVersion{}, noMaster(output)
}
