package mounts

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/patience"
)

// watched is a server whose list of open files is a file, with clients from another file.
type watched struct {
	g      *WithT
	dir    string
	config spec.Quiet
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{g: NewWithT(t), dir: t.TempDir()}
	w.config = spec.Quiet{
		Server:  "storage server 3",
		Clients: []string{"cat", w.path("clients")}, Client: `(?m)^(?P<name>\S+) \[ID: (?P<id>[0-9]+)\]$`,
		Open: []string{"cat", w.path("open")}, Session: `(?m)^(?P<id>[0-9]+): (?P<files>[0-9]+)$`, Answered: "Final results",
	}
	w.write("clients", "c1 [ID: 5]\nc2 [ID: 6]\n")
	w.opened("")
	return w
}

func (w *watched) path(name string) string { return filepath.Join(w.dir, name) }

func (w *watched) write(name, content string) {
	w.g.Expect(os.WriteFile(w.path(name), []byte(content), 0o600)).To(Succeed())
}

func (w *watched) opened(sessions string) {
	w.write("next", "Found 2 sessions.\n\n"+sessions+"\nFinal results: open files\n")
	w.g.Expect(os.Rename(w.path("next"), w.path("open"))).To(Succeed())
}

// also adds another server to be queried.
func (w *watched) also(sessions string) {
	w.write("also", "Found 2 sessions.\n\n"+sessions+"\nFinal results: open files\n")
	w.config.Also = []spec.QuietServer{{Server: "metadata server 1", Open: []string{"cat", w.path("also")}}}
}

// moves runs a script, such as one that moves files, while clients must be quiet.
func (w *watched) moves(t *testing.T, script string) error {
	t.Helper()
	return Configure(t.Context(), spec.Configure{
		Quiet: &w.config, Commands: []spec.Command{{Argv: []string{"sh", "-c", script, "sh", w.dir}, TimeoutSeconds: -1}},
	}, os.LookupEnv, &bytes.Buffer{}, slog.New(slog.DiscardHandler))
}

func TestNothingIsMovedWhile(t *testing.T) {
	for sentence, c := range map[string]struct {
		change func(w *watched)
		says   string
	}{
		"a client has files open": {
			func(w *watched) { w.opened("6: 3\n") },
			"nothing is done: clients have files open on storage server 3, and what they write to files that are moved would be lost: c2 (3); ",
		},
		"a client that is not listed has files open": {func(w *watched) { w.opened("9: 1\n") }, "lost: client 9 (1); "},
		"a client has opened a file on another server": {
			func(w *watched) { w.also("5: 1\n") },
			"nothing is done: clients have files open on metadata server 1, and what they write to files that are moved would be lost: c1 (1); ",
		},
		"another server gives no answer": {
			func(w *watched) { w.also(""); w.write("also", "") }, "it is unknown which clients have files open on metadata server 1: cat printed no answer",
		},
		"the server gives no answer":     {func(w *watched) { w.write("open", "") }, "it is unknown which clients have files open on storage server 3: cat printed no answer"},
		"the server can't be asked":      {func(w *watched) { w.config.Open = []string{"false"} }, "false failed with exit code 1"},
		"the clients are unknown":        {func(w *watched) { w.config.Clients = []string{"false"} }, "the clients are unknown"},
		"the expressions have no groups": {func(w *watched) { w.config.Session = "x" }, "without the group id"},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWatched(t)
			c.change(w)
			w.g.Expect(w.moves(t, `: > "$1"/moved`)).To(MatchError(ContainSubstring(c.says)))
			w.g.Expect(w.path("moved")).NotTo(BeAnExistingFile())
		})
	}
}

func TestFilesAreMovedWhileNoClientHasAnyOpen(t *testing.T) {
	w := newWatched(t)
	w.g.Expect(w.moves(t, `: > "$1"/moved`)).To(Succeed())
	w.g.Expect(w.path("moved")).To(BeAnExistingFile())
}

func TestAProgramThatOpensAFileMeanwhileIsNoticed(t *testing.T) {
	for sentence, c := range map[string]struct {
		sessions, also string
		says           string
	}{
		"a client that was there":                  {"7: 2\n5: 1\n", "7: 1\n", "on storage server 3, and what they write to files that are moved would be lost: c1 (1); "},
		"a client that was there, elsewhere":       {"7: 2\n", "6: 1\n7: 1\n", "on metadata server 1, and what they write to files that are moved would be lost: c2 (1); "},
		"more clients than the mover's own":        {"7: 2\n8: 1\n", "", "lost: client 7 (2), client 8 (1); "},
		"more clients on both servers together":    {"7: 2\n", "8: 1\n", "lost: client 7 (2); "},
		"the mover itself alone is no harm":        {"7: 2\n", "", ""},
		"the mover itself on both servers neither": {"7: 2\n", "7: 1\n", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWatched(t)
			q, err := newQuiet(t.Context(), w.config)
			w.g.Expect(err).NotTo(HaveOccurred())
			w.opened(c.sessions)
			w.also(c.also)
			q.config = w.config
			err = q.look(t.Context(), true)
			if c.says == "" {
				w.g.Expect(err).NotTo(HaveOccurred())
				return
			}
			w.g.Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
}

// A mover that is asked to end finishes its current file.
func TestACommandEndsInPeaceWhenAClientOpensAFile(t *testing.T) {
	w := newWatched(t)
	q, err := newQuiet(t.Context(), w.config)
	w.g.Expect(err).NotTo(HaveOccurred())
	q.pause = 10 * time.Millisecond
	go func() {
		w.g.Eventually(w.path("started")).WithTimeout(patience.Bound(time.Minute)).Should(BeAnExistingFile())
		w.opened("5: 1\n7: 2\n")
	}()
	script := `trap 'sleep 0.2; : > "$1"/whole; exit 0' TERM; : > "$1"/started; while :; do sleep 0.01; done`
	err = runCommand(t.Context(), 0, spec.Command{Argv: []string{"sh", "-c", script, "sh", w.dir}, TimeoutSeconds: -1}, false, q, &bytes.Buffer{},
		slog.New(slog.DiscardHandler))
	w.g.Expect(err).To(MatchError(And(ContainSubstring("command 1, sh, was ended before it was done"), ContainSubstring("c1 (1)"))))
	w.g.Expect(w.path("whole")).To(BeAnExistingFile())
}

func TestACommandEndsWhenTheStateOfClientsIsUnknownForLong(t *testing.T) {
	w := newWatched(t)
	q, err := newQuiet(t.Context(), w.config)
	w.g.Expect(err).NotTo(HaveOccurred())
	q.pause = 10 * time.Millisecond
	q.config.Open = []string{"sh", "-c", `echo >> "$1"; exit 1`, "sh", w.path("looks")}
	err = runCommand(t.Context(), 0, spec.Command{Argv: []string{"sleep", "600"}, TimeoutSeconds: -1}, false, q, &bytes.Buffer{}, slog.New(slog.DiscardHandler))
	w.g.Expect(err).To(MatchError(ContainSubstring("it is unknown which clients have files open on storage server 3")))
	looks, err := os.ReadFile(w.path("looks"))
	w.g.Expect(err).NotTo(HaveOccurred())
	w.g.Expect(looks).To(HaveLen(blindLooks))
}
