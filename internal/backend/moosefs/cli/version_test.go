package cli

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend"
)

// The answers are real ones of 3.0.117 and 4.57.5, without the parts that are not parsed.
func TestTheVersionOfTheMetadata(t *testing.T) {
	const alone = `{"version": "4.57.5", "dataset": {"info": {"masters": [{"ip": "127.0.0.1", "strver": "4.57.5", "state": "MASTER", ` +
		`"metadata_version": 4, "metadata_id": 7711399955986580376, "metadata_delay": null}]}}, "errors": []}`
	for name, c := range map[string]struct {
		version, answer string
		says            backend.BackupVersion
	}{
		"of 3.0.117": {"3.0.117", "metadata servers:\t127.0.0.1\t3.0.117\t-\t1795450288.805660\t2\tnot available\t207671296\tnot available\t-\t-\t-\t" +
			"60031CB7B5B13C8D\n", backend.BackupVersion{Version: 2}},
		"of 3.0.117 in groups of digits": {"3.0.117", "metadata servers:\t127.0.0.1\t3.0.117\t-\t1795451705.761310\t12 001 135\tnot available\t341680128\t" +
			"not available\t-\t-\t-\t0CE69D6EBB94243B\n", backend.BackupVersion{Version: 12001135}},
		"of 4.57.5": {"4.57.5", alone, backend.BackupVersion{Version: 4, ID: "6B046567398B0398"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			says, err := ReadVersion(c.version, []byte(c.answer))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(says).To(Equal(c.says))
		})
	}
	for name, c := range map[string]struct{ version, answer string }{
		"no master of 3.0.117": {"3.0.117", "Working master servers not found !!! - maybe you are using wrong port number or wrong dns name\n\n" +
			"metadata servers:\t127.0.0.1\t0.0.0\tDEAD\tnot available\t0\tnot available\tnot available\tnot available\t-\t-\t-\t-\n"},
		"no master of 4.57.5":   {"4.57.5", ""},
		"a master without any":  {"4.57.5", `{"dataset": {"info": {"masters": [{"metadata_version": null}]}}}`},
		"no JSON":               {"4.57.5", "Traceback"},
		"columns that are new":  {"3.0.117", "metadata servers:\t127.0.0.1\t3.0.117\t-\t1795450288.805660\t2\n"},
		"a number that is none": {"3.0.117", "metadata servers:\ta\t3\t-\t1\tmany\tb\tc\td\t-\t-\t-\te\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadVersion(c.version, []byte(c.answer))
			NewWithT(t).Expect(err).To(HaveOccurred())
		})
	}
}

// The answers are those of a healthy master, with the parts of real masters that they were recorded without.
func TestTheAnswerOfTheProbeHasTheVersionOfTheMetadata(t *testing.T) {
	for name, c := range map[string]struct {
		version, after, part string
		is                   int64
	}{
		"of 3.0.117": {"3.0.117", "", "metadata servers:\t127.0.0.1\t3.0.117\t-\t1795451705.761310\t12 001 135\tnot available\t341680128\t" +
			"not available\t-\t-\t-\t0CE69D6EBB94243B\n", 12001135},
		"of a master of 3.0.117 that does not answer": {"3.0.117", "", "metadata servers:\t127.0.0.1\t0.0.0\tDEAD\tnot available\t0\tnot available\t" +
			"not available\tnot available\t-\t-\t-\t-\n", 0},
		"of 4.57.5":                           {"4.57.5", `"dataset": {"info": {`, `"masters": [{"state": "MASTER", "metadata_version": 1135, "metadata_delay": null}], `, 1135},
		"of 4.59.2":                           {"4.59.2", `"dataset": {"info": {`, `"masters": [{"state": "MASTER", "metadata_version": 1135, "metadata_delay": null}], `, 1135},
		"of two masters":                      {"4.59.2", `"dataset": {"info": {`, `"masters": [{"metadata_version": 1135}, {"metadata_version": 7}], `, 0},
		"of a master that does not report it": {"4.57.5", `"dataset": {"info": {`, `"masters": [{"metadata_version": null}], `, 0},
		"of nobody":                           {"4.57.5", "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			outputs := said(t, c.version, "healthy")
			g.Expect(string(outputs[0])).To(ContainSubstring(c.after))
			outputs[0] = bytes.Replace(outputs[0], []byte(c.after), []byte(c.after+c.part), 1)
			state, err := New(c.version, "10.0.0.1:9421").Parse(outputs)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(state.MetadataVersion).To(Equal(c.is))
		})
	}
}

func TestTheMasterIsAskedForItsVersion(t *testing.T) {
	g := NewWithT(t)
	g.Expect(AskVersion("3.0.117", "10.0.0.1:9421")).To(Equal([]string{"mfscli", "-n", "-s", "\t", "-H", "10.0.0.1", "-P", "9421", "-SIM"}))
	g.Expect(AskVersion("4.57.5", "10.0.0.1:9421")).To(Equal([]string{"mfscli", "-n", "-j", "-H", "10.0.0.1", "-P", "9421", "-SIM"}))
}
