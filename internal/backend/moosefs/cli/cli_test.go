package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// The output in testdata was recorded from real daemons, in one situation after another. There were two nodes, .11 with the master and a
// client, and .12. Each had a metalogger, a chunkserver of label A on port 19435 with the disks /data/ssd0/data and /data/ssd1/data, and
// one of label B on port 19436 with /data/hdd0/data.
var network = map[string]string{"3.0.117": "10.97.3.", "4.57.5": "10.97.4.", "4.59.2": "10.97.5."}

// used is how much of the machine's disk was in use then, because MooseFS counts that too.
var used = map[string]float64{"3.0.117": 66e9, "4.57.5": 66e9, "4.59.2": 51.8e9}

// said returns the output of mfscli of a version in a situation.
func said(t testing.TB, version, situation string) [][]byte {
	t.Helper()
	files := []string{situation + ".json"}
	if version == "3.0.117" {
		files = []string{situation + ".servers.txt", situation + ".mounts.txt"}
	}
	outputs := make([][]byte, len(files))
	for i, file := range files {
		raw, err := os.ReadFile(filepath.Join("testdata", version, file))
		if err != nil {
			t.Fatal(err)
		}
		outputs[i] = raw
	}
	return outputs
}

// each runs a test for each version, with its output in a situation.
func each(t *testing.T, situation string, test func(g Gomega, state backend.State, ip string)) {
	t.Helper()
	for version, ip := range network {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			state, err := New(version, ip+"11:19421").Parse(said(t, version, situation))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(state.Version).To(Equal(version))
			test(g, state, ip)
		})
	}
}

func server(state backend.State, ip string, port int32) backend.Server {
	for _, s := range state.Servers {
		if s.IP == ip && s.Port == port {
			return s
		}
	}
	return backend.Server{}
}

func target(state backend.State, ip, path string) backend.Target {
	for _, t := range state.Targets {
		if t.IP == ip && t.Path == path {
			return t
		}
	}
	return backend.Target{}
}

func connected(sessions []backend.Session) []backend.Session {
	var out []backend.Session
	for _, s := range sessions {
		if s.Connected {
			out = append(out, s)
		}
	}
	return out
}

const diskSize = 97793294336

func TestMfscliIsAskedWithoutAShellAndWithoutTheDNS(t *testing.T) {
	g := NewWithT(t)
	g.Expect(New("4.57.5", "10.0.0.1:9421").Commands()).To(Equal([][]string{{
		"mfscli", "-n", "-j", "-H", "10.0.0.1", "-P", "9421", "-SIG", "-SIC", "-SCS", "-SMB", "-SHD", "-SSC", "-SIM", "-SMS",
	}}))
	g.Expect(New("3.0.117", "10.0.0.1:9421").Commands()).To(Equal([][]string{
		{"mfscli", "-n", "-s", "\t", "-H", "10.0.0.1", "-P", "9421", "-SIG", "-SIC", "-SCS", "-SMB", "-SHD", "-SSC", "-SIM"},
		{"mfscli", "-n", "-s", "\t", "-H", "10.0.0.1", "-P", "9421", "-SMS"},
	}))
}

func TestTheStateOfAHealthyMasterIsComplete(t *testing.T) {
	each(t, "healthy", func(g Gomega, state backend.State, ip string) {
		version := state.Version
		metalogger := func(ip string) backend.Server {
			return backend.Server{Role: v1alpha1.RoleMetadataBackup, IP: ip, Online: true, Version: version}
		}
		g.Expect(state.Servers).To(ContainElements(metalogger(ip+"11"), metalogger(ip+"12")))
		g.Expect(state.Servers).To(HaveLen(6))
		for _, host := range []string{ip + "11", ip + "12"} {
			ssd := server(state, host, 19435)
			g.Expect(ssd.Role).To(Equal(v1alpha1.RoleStorage))
			g.Expect(ssd.Online).To(BeTrue())
			g.Expect(ssd.Version).To(Equal(version))
			g.Expect(ssd.Labels).To(Equal([]string{"A"}))
			g.Expect(ssd.CapacityBytes).To(BeEquivalentTo(2 * diskSize))
			g.Expect(ssd.UsedBytes).To(BeNumerically("~", 2*used[version], 1e9))
			g.Expect(server(state, host, 19436).Labels).To(Equal([]string{"B"}))

			disk := target(state, host, "/data/ssd1/data/")
			g.Expect(disk.Port).To(BeEquivalentTo(19435))
			g.Expect(disk.Online).To(BeTrue())
			g.Expect(disk.Status).To(Equal("ok"))
			g.Expect(disk.CapacityBytes).To(BeEquivalentTo(diskSize))
			g.Expect(disk.UsedBytes).To(BeNumerically("~", used[version], 1e9))
			g.Expect(disk.Chunks).To(BeNumerically(">", 1))
		}
		g.Expect(state.Targets).To(HaveLen(6))
		g.Expect(state.Data).To(Equal(backend.DataHealth{Known: true, Stable: 12, Fewest: 1}))
		g.Expect(connected(state.Sessions)).To(Equal([]backend.Session{
			{IP: ip + "11", Path: "/mnt/fs/scratch", Connected: true, Version: version},
		}))
		g.Expect(state.Sessions).To(ContainElement(backend.Session{IP: ip + "11", Path: "/mnt/a"}), "a mount that is gone is remembered")
		g.Expect(state.StorageClasses).To(HaveKeyWithValue("ssd", "2A"))
		g.Expect(state.StorageClasses).To(HaveKeyWithValue("bulk", "1B"))
	})
}

func TestClassesThatTheOperatorDidNotMakeDiffer(t *testing.T) {
	g := NewWithT(t)
	classes := map[string]map[string]string{}
	for version := range network {
		state, err := New(version, "").Parse(said(t, version, "healthy"))
		g.Expect(err).NotTo(HaveOccurred())
		classes[version] = state.StorageClasses
	}
	g.Expect(classes["3.0.117"]).To(HaveKeyWithValue("3", "3*; mode STD"))
	g.Expect(classes["4.57.5"]).To(HaveKeyWithValue("2CP", "2*; mode STD"))
	g.Expect(class{keep: "2A/[RACK]", others: map[string]string{"create": "2A"}, mode: "STRICT"}.String()).To(Equal("2A/[RACK]; create 2A"))
	g.Expect(expression([]string{"A", "B+C"})).To(Equal("1A,1B+C"))
}

func TestAClassOf3ThatWasChangedIsWhatItWasChangedTo(t *testing.T) {
	line := "storage classes:\t10\tssd\tNO\tSTRICT\t19\t2\t-\t0\t19\t-\t-\t-\tYES\t1\tA\tYES\t1\tA\tYES\t2\tA , A\t"
	cases := map[string]struct{ delay, text string }{
		"the old copies stay for archiving, which never happens": {"-", "1A"},
		"somebody made it archive":                               {"7d", "1A; arch 2A"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			state, err := parseTables([]byte("master info:\tmaster version\t3.0.117\n" + line + c.delay + "\n"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(state.StorageClasses).To(Equal(map[string]string{"ssd": c.text}))
		})
	}
}

func TestAnAdministratorsMountIsKnown(t *testing.T) {
	each(t, "admin", func(g Gomega, state backend.State, ip string) {
		g.Expect(connected(state.Sessions)).To(ConsistOf(
			backend.Session{IP: ip + "11", Path: "/mnt/fs/scratch", Connected: true, Version: state.Version},
			backend.Session{IP: ip + "11", Path: "/mnt/b", Connected: true, Admin: true, Version: state.Version},
		))
	})
}

func TestAMountCanNotFeignAServer(t *testing.T) {
	each(t, "hostile", func(g Gomega, state backend.State, _ string) {
		g.Expect(state.Servers).To(HaveLen(6))
		g.Expect(state.Targets).To(HaveLen(6))
		g.Expect(connected(state.Sessions)).NotTo(BeEmpty())
	})
	g := NewWithT(t)
	g.Expect(string(said(t, "3.0.117", "hostile")[1])).To(ContainSubstring("\nchunk servers:\tx"),
		"the path of the mount holds a line of another table")
}

func TestADiskMarkedForRemovalStillServes(t *testing.T) {
	each(t, "marked", func(g Gomega, state backend.State, ip string) {
		disk := target(state, ip+"11", "/data/ssd0/data/")
		g.Expect(disk.Online).To(BeTrue())
		g.Expect(disk.Status).To(Or(Equal("marked for removal (not ready)"), Equal("MFR NOT READY"), Equal("marked for removal"), Equal("removal not ready (in progress)")))
		g.Expect(disk.Removing).To(BeTrue())
		g.Expect(disk.Removable).To(BeFalse())
		g.Expect(target(state, ip+"11", "/data/ssd1/data/").Removing).To(BeFalse())
		g.Expect(server(state, ip+"11", 19435).CapacityBytes).To(BeEquivalentTo(2*diskSize), "the disk still counts")
		g.Expect(server(state, ip+"11", 19435).UsedBytes).To(BeNumerically("~", 2*used[state.Version], 1e9), "the disk still counts")
	})
}

func TestADiskIsRemovableWhenMooseFSCallsItReadyAndNoDataHasTooFewCopies(t *testing.T) {
	// The words are from the sources of each mfscli.
	ready := map[string][2]string{"3.0.117": {"marked for removal (not ready)", "marked for removal (ready)"}, "4.57.5": {"MFR NOT READY", "MFR READY"},
		"4.59.2": {"removal not ready (in progress)", "removal ready"}}
	undergoal := map[string][2]string{"3.0.117": {"chunkclass undergoal:\t0", "chunkclass undergoal:\t3"}, "4.57.5": {`"undergoal": 0`, `"undergoal": 3`},
		"4.59.2": {`"undergoal": 0`, `"undergoal": 3`}}
	cases := map[string]struct {
		changes   []map[string][2]string
		removable bool
	}{
		"not ready":                        {nil, false},
		"ready":                            {[]map[string][2]string{ready}, true},
		"ready, but data lacks copies":     {[]map[string][2]string{ready, undergoal}, false},
		"not ready, and data lacks copies": {[]map[string][2]string{undergoal}, false},
		"ready, but the data is not counted": {[]map[string][2]string{ready, {
			"3.0.117": {"chunkclass", "chunk class"}, "4.57.5": {`"progress_status": 0`, `"progress_status": 1`},
			"4.59.2": {`"progress_status": 0`, `"progress_status": 1`}}}, false},
	}
	for name, c := range cases {
		for version, ip := range network {
			t.Run(name+", "+version, func(t *testing.T) {
				g := NewWithT(t)
				outputs := said(t, version, "marked")
				for _, change := range c.changes {
					g.Expect(string(outputs[0])).To(ContainSubstring(change[version][0]))
					outputs[0] = []byte(strings.ReplaceAll(string(outputs[0]), change[version][0], change[version][1]))
				}
				state, err := New(version, "").Parse(outputs)
				g.Expect(err).NotTo(HaveOccurred())
				for _, s := range state.Targets {
					marked := s.IP == ip+"11" && s.Path == "/data/ssd0/data/"
					g.Expect(s.Removing).To(Equal(marked), s.Path)
					g.Expect(s.Removable).To(Equal(marked && c.removable), s.Path)
				}
			})
		}
	}
}

func TestTheContentOfADiskIsUnknownDuringItsScan(t *testing.T) {
	g := NewWithT(t)
	removing, ready := removal([]string{"marked for removal (ready)", "scanning"})
	g.Expect(removing).To(BeTrue())
	g.Expect(ready).To(BeFalse())
	_, ready = removal([]string{"damaged", "MFR READY"})
	g.Expect(ready).To(BeTrue(), "its data has its copies elsewhere")
	removing, _ = removal([]string{"ok"})
	g.Expect(removing).To(BeFalse())
}

func TestADamagedDiskIsNotOnline(t *testing.T) {
	each(t, "damaged", func(g Gomega, state backend.State, ip string) {
		disk := target(state, ip+"12", "/data/ssd1/data/")
		g.Expect(disk.Online).To(BeFalse())
		g.Expect(disk.Status).To(Equal("damaged"))
		g.Expect(target(state, ip+"12", "/data/ssd0/data/").Online).To(BeTrue())
		g.Expect(server(state, ip+"12", 19435).Online).To(BeTrue())
		g.Expect(server(state, ip+"12", 19435).CapacityBytes).To(BeEquivalentTo(diskSize))
		g.Expect(state.Data.Known).To(Equal(state.Version != "4.59.2"), "that one was asked while it counted anew")
		g.Expect(state.Data.Missing).To(BeZero())
		g.Expect(state.Data.Endangered).To(BeNumerically(">", 0))
	})
}

func TestAKilledChunkserverIsKnownAndNotOnline(t *testing.T) {
	each(t, "lost", func(g Gomega, state backend.State, ip string) {
		g.Expect(server(state, ip+"12", 19435)).To(Or(
			Equal(backend.Server{Role: v1alpha1.RoleStorage, IP: ip + "12", Port: 19435}),
			Equal(backend.Server{Role: v1alpha1.RoleStorage, IP: ip + "12", Port: 19435, Labels: []string{}})))
		g.Expect(server(state, ip+"11", 19435).Online).To(BeTrue())
		g.Expect(target(state, ip+"12", "/data/ssd0/data/")).To(Equal(backend.Target{}))
		g.Expect(server(state, ip+"11", 0).Role).To(Equal(v1alpha1.RoleMetadataBackup))
		g.Expect(server(state, ip+"12", 0)).To(Equal(backend.Server{}), "its metalogger was killed too, and is forgotten at once")
		g.Expect(state.Data.Endangered).To(BeNumerically(">", 0))
	})
}

func TestWithoutAnyChunkserverTheMasterStillAnswers(t *testing.T) {
	each(t, "bare", func(g Gomega, state backend.State, ip string) {
		known := 0
		for _, s := range state.Servers {
			if s.Role == v1alpha1.RoleStorage {
				known++
				g.Expect(s.Online).To(BeFalse())
			}
		}
		if state.Version != "4.57.5" { // its mfscli crashes when it lists them, and omits them
			g.Expect(known).To(Equal(4))
		}
		g.Expect(state.Targets).To(BeEmpty())
		g.Expect(state.StorageClasses).To(HaveKeyWithValue("ssd", "2A"))
		g.Expect(state.Data).To(Equal(backend.DataHealth{Known: true, Missing: 20}))
	})
}

func TestCountsThatAreNotValidYetAreNotKnown(t *testing.T) {
	g := NewWithT(t)
	state, err := New("4.57.5", "10.97.4.11:19421").Parse(said(t, "4.57.5", "fresh"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.Data.Known).To(BeFalse())
}

func TestAChunkserverThatDoesNotAnswer(t *testing.T) {
	t.Run("is named by 4.57.5", func(t *testing.T) {
		g := NewWithT(t)
		state, err := New("4.57.5", "10.97.4.11:19421").Parse(said(t, "4.57.5", "unreachable"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(state.Targets).To(ContainElement(backend.Target{IP: "10.97.4.12", Port: 19435, Status: "server unreachable"}))
		g.Expect(target(state, "10.97.4.11", "/data/ssd0/data/").Online).To(BeTrue())
	})
	t.Run("is named by 4.59.2", func(t *testing.T) {
		g := NewWithT(t)
		state, err := New("4.59.2", "10.97.5.11:19421").Parse(said(t, "4.59.2", "unreachable"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(state.Targets).To(ContainElement(backend.Target{IP: "10.97.5.12", Port: 19435, Status: "unknown (unreachable chunkserver)"}))
		g.Expect(target(state, "10.97.5.11", "/data/ssd0/data/").Online).To(BeTrue())
	})
	t.Run("leaves 3.0.117 without an answer about any disk, which is no state at all", func(t *testing.T) {
		g := NewWithT(t)
		_, err := New("3.0.117", "10.97.3.11:19421").Parse(said(t, "3.0.117", "unreachable"))
		g.Expect(err).To(MatchError(ContainSubstring("mfscli broke down: RuntimeError: MFS communication error")))
	})
}

func TestAMasterThatIsDownIsNoState(t *testing.T) {
	for version, says := range map[string]string{
		"3.0.117": "mfscli -H 10.0.0.1 -P 9421: it says \"Working master servers not found !!!",
		"4.57.5":  "mfscli -H 10.0.0.1 -P 9421: it printed nothing, as it does when no master answers there",
		"4.59.2":  "mfscli -H 10.0.0.1 -P 9421: it reports \"\\\"Can't connect to the MooseFS Master server (10.97.5.11)\\\"\"",
	} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			_, err := New(version, "10.0.0.1:9421").Parse(said(t, version, "down"))
			g.Expect(err).To(MatchError(ContainSubstring(says)))
		})
	}
}

func TestTheExitCodeOf4_59ForAMasterThatIsDownIsIgnoredAndItsOutputDecides(t *testing.T) {
	g := NewWithT(t)
	p := New("4.59.2", "10.0.0.1:9421").(backend.TolerantQuestions)
	g.Expect(p.Limit(0)).To(BeZero())
	g.Expect(p.Tolerates(0, 1, "")).To(BeTrue())
	g.Expect(p.Tolerates(0, 1, "Traceback (most recent call last):\n")).To(BeFalse())
	g.Expect(p.Tolerates(0, -1, "")).To(BeFalse(), "it was stopped")
}

func TestAnswersThatCanNotBeTrustedAreRefused(t *testing.T) {
	healthy := string(said(t, "3.0.117", "healthy")[0])
	replace := func(part, with string) string {
		if !strings.Contains(healthy, part) {
			t.Fatalf("the answer has no %q", part)
		}
		return strings.Replace(healthy, part, with, 1)
	}
	cases := map[string]struct{ version, output, says string }{
		"a table with another number of columns": {"3.0.117", replace("\tmaintenance_off", ""), `"chunk servers:" has 13 columns and should have 14`},
		"a port that is none":                    {"3.0.117", replace("\t19435\t", "\t194350\t"), `"194350" is no port`},
		"a size that is no number":               {"3.0.117", replace("97793294336", "many"), "is no number"},
		"a disk without its address":             {"3.0.117", replace("10.97.3.11:19435:/", "/"), "is not address:port:path"},
		"an answer without a version":            {"3.0.117", replace("\tmaster version\t", "\tother\t"), "did not say the master's version"},
		"an empty answer":                        {"3.0.117", "", "did not say the master's version"},
		"JSON that is cut off":                   {"4.57.5", `{"dataset": {`, "can't read its JSON"},
		"JSON of something else":                 {"4.57.5", `{"dataset": {}}`, "no dataset.info.general.version"},
		"an error that it reports":               {"4.57.5", `{"dataset": {}, "errors": ["section 'CS' not allowed"]}`, "it reports \"\\\"section 'CS' not allowed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			outputs := [][]byte{[]byte(c.output), nil}
			_, err := New(c.version, "10.0.0.1:9421").Parse(outputs[:len(New(c.version, "").Commands())])
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
	t.Run("too few answers", func(t *testing.T) {
		g := NewWithT(t)
		_, err := New("3.0.117", "10.0.0.1:9421").Parse(nil)
		g.Expect(err).To(MatchError("0 answers of mfscli to 2 commands"))
	})
}

func TestADiskThatIsBeingScannedIsNotOnlineYet(t *testing.T) {
	g := NewWithT(t)
	state, err := parseTables([]byte("master info:\tmaster version\t3.0.117\n" +
		"disks:\t10.0.0.1:9435:/data/ssd0/data/\t0\tno errors\tscanning\t-\t-\t-\t-\t-\t-\t-\t-\tprogress:\t40\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.Targets).To(Equal([]backend.Target{{IP: "10.0.0.1", Port: 9435, Path: "/data/ssd0/data/", Status: "scanning"}}))
	g.Expect(online(nil)).To(BeFalse(), "a disk without a status is not trusted")
	g.Expect(online([]string{"marked for removal (ready)", "scanning"})).To(BeFalse())
	g.Expect(online([]string{"MFR READY"})).To(BeTrue())
	g.Expect(online([]string{"ok (errors)"})).To(BeTrue(), "it had an error, and serves")
}

// fuzz checks that no answer makes a parser panic, and that an accepted State is consistent. The answers are long: with -fuzz, also set
// -fuzzminimizetime 1x, or most of the time goes into shortening them.
func fuzz(f *testing.F, version string) {
	f.Helper()
	for _, situation := range []string{"healthy", "hostile", "admin", "marked", "damaged", "lost", "unreachable", "bare", "down"} {
		outputs := said(f, version, situation)
		f.Add(outputs[0], outputs[len(outputs)-1])
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		prober := New(version, "10.0.0.1:9421")
		state, err := prober.Parse([][]byte{first, second}[:len(prober.Commands())])
		if err != nil {
			return
		}
		if state.Version == "" {
			t.Error("a state without a version was accepted")
		}
		for _, target := range state.Targets {
			if target.Online && target.Status == "" {
				t.Errorf("%+v is online, but nothing says so", target)
			}
		}
	})
}

func FuzzMfscliOf3(f *testing.F) { fuzz(f, "3.0.117") }

func FuzzMfscliOf4(f *testing.F) { fuzz(f, "4.57.5") }

func FuzzMfscliOf4_59(f *testing.F) { fuzz(f, "4.59.2") }

func TestTheFewestCopiesOfAnyChunkAreKnown(t *testing.T) {
	cases := map[string]struct {
		cells  []cell
		fewest int64
	}{
		"every chunk has as many as the one that has the fewest, or more": {[]cell{{"3", "3", 7}, {"2", "2", 1}, {"9", "10", 4}}, 2},
		"a chunk that has lost a copy counts":                             {[]cell{{"3", "3", 7}, {"3", "1", 1}}, 1},
		"chunks that no file has any more don't":                          {[]cell{{"3", "3", 7}, {"0", "1", 5}}, 3},
		"there is none without data":                                      {nil, 0},
		"what is not understood is not known":                             {[]cell{{"3", "3", 7}, {"2", "10+", 5}}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(fewest(c.cells)).To(Equal(c.fewest)) })
	}
	each(t, "damaged", func(g Gomega, state backend.State, _ string) { g.Expect(state.Data.Fewest).To(BeEquivalentTo(1)) })
}

func TestAClassWithCopiesInDifferentRacksHasThemInItsRule(t *testing.T) {
	g := NewWithT(t)
	outputs := said(t, "4.57.5", "healthy")
	outputs[0] = []byte(strings.ReplaceAll(string(outputs[0]), `"uniqmask_str": "-"`, `"uniqmask_str": "[RACK]"`))
	state, err := New("4.57.5", "").Parse(outputs)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.StorageClasses).To(HaveKeyWithValue("ssd", "2A/[RACK]"))
}
