package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// The output of beegfs-ctl 7.4.6 in testdata was recorded from a real tool and real daemons, in one situation after another. There were the
// metadata servers 1 and 2, and the storage servers 1 and 2, all on one machine whose disk has 252 GiB. The first interface of storage
// server 2 differs from that of the others. The tool beegfs 8.3.1 queried a real management service without any other server. The state of
// the situation "full" was written into its store. The owner of the root directory, which only a server reports, is from the source of the
// tool.
var files7 = []string{
	askManagement7: "nodes-management.txt", askMeta7: "nodes-meta.txt", askStorage7: "nodes-storage.txt", askClients7: "nodes-client.txt",
	askMetaTargets7: "targets-meta.txt", askStorageTargets7: "targets-storage.txt", askPools7: "pools.txt",
	askMetaGroups7: "groups-meta.txt", askStorageGroups7: "groups-storage.txt",
	askRoot7: "root.txt", askMetaSpace7: "space-meta.txt", askStorageSpace7: "space-storage.txt",
}

var files8 = []string{
	askNodes8: "nodes.ndjson", askTargets8: "targets.ndjson", askPools8: "pools.ndjson", askMirrors8: "mirrors.ndjson",
	askLicense8: "license.json", askRoot8: "root.ndjson",
}

// transcript returns the output of the tool of a version in a situation.
func transcript(t testing.TB, version, situation string) [][]byte {
	t.Helper()
	directory, files := "beegfs-ctl-7.4.6", files7
	if Is8(version) {
		directory, files = "beegfs-8.3.1", files8
	}
	var outputs [][]byte
	for _, file := range files {
		raw, err := os.ReadFile(filepath.Join("testdata", directory, situation, file))
		if err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, raw)
	}
	return outputs
}

func parsed(t testing.TB, version, situation string) backend.State {
	t.Helper()
	state, err := New(version, "10.78.0.1:9110").Parse(transcript(t, version, situation))
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func targetOf(state backend.State, role v1alpha1.Role, id int32) backend.Target {
	for _, t := range state.Targets {
		if t.Role == role && t.ID == id {
			return t
		}
	}
	return backend.Target{}
}

const (
	oneDisk = 252 << 30
)

// serverOf returns the server as BeeGFS lists it, nil when it does not.
func serverOf(state *backend.State, role v1alpha1.Role, id int32) *backend.Server {
	for i := range state.Servers {
		if s := &state.Servers[i]; s.Role == role && (s.ID == id || role == v1alpha1.RoleManagement) {
			return s
		}
	}
	return nil
}

func TestBeegfsCtlIsAskedWithoutAShellByTheConfigurationOfAClient(t *testing.T) {
	g := NewWithT(t)
	const config = "--cfgFile=/etc/parallelfs/beegfs-client.conf"
	g.Expect(New("7.4.6", "10.0.0.1:8008").Commands()).To(Equal([][]string{
		{programCtl, "--listnodes", "--nodetype=management", "--nicdetails", config},
		{programCtl, "--listnodes", "--nodetype=meta", "--nicdetails", config},
		{programCtl, "--listnodes", "--nodetype=storage", "--nicdetails", config},
		{programCtl, "--listnodes", "--nodetype=client", "--nicdetails", config},
		{programCtl, "--listtargets", "--nodetype=meta", "--state", "--pools", config},
		{programCtl, "--listtargets", "--nodetype=storage", "--state", "--storagepools", "--pools", config},
		{programCtl, "--liststoragepools", config},
		{programCtl, "--listmirrorgroups", "--nodetype=meta", config},
		{programCtl, "--listmirrorgroups", "--nodetype=storage", config},
		{programCtl, "--getentryinfo", "--unmounted", "/", config},
		{programCtl, "--listtargets", "--nodetype=meta", "--spaceinfo", config},
		{programCtl, "--listtargets", "--nodetype=storage", "--spaceinfo", config},
	}))
}

func TestTheToolOfVersion8IsAskedWithoutAShell(t *testing.T) {
	g := NewWithT(t)
	asked := New("8.3.1", "10.0.0.1:8010").Commands()
	g.Expect(asked[askTargets8]).To(Equal([]string{
		"/opt/beegfs/sbin/beegfs", "target", "list", "--state", "--capacity", "--mount=none", "--output=ndjson", "--raw",
		"--mgmtd-addr=10.0.0.1:8010", "--auth-file=/etc/parallelfs-auth/conn.auth", "--tls-disable",
		"--columns=id,node,storage_pool,reachability,consistency,cap_pool,space,space_free,inodes,inodes_free",
	}))
	g.Expect(asked[askLicense8]).To(ContainElement("--output=json"), "ndjson is a drawing of a bee")
	for _, argv := range append(New("8.3.1", "tls://mgmtd.site:8010").Commands(), NewTool("8.3.1", "tls://mgmtd.site:8010").Run("node", "list")) {
		g.Expect(argv).To(ContainElements("--mgmtd-addr=mgmtd.site:8010", "--tls-cert-file=/etc/parallelfs/management-trust.pem"))
		g.Expect(argv).NotTo(ContainElement(HavePrefix("--tls-disable")), "a certificate is verified, always")
	}
}

func TestTheStateOfAHealthyBeeGFSIsComplete(t *testing.T) {
	g := NewWithT(t)
	state := parsed(t, "7.4.6", "healthy")
	g.Expect(state.Version).To(Equal("7.4.6"))
	g.Expect(state.RootID).To(BeEquivalentTo(1))
	g.Expect(state.MetadataMirrored).To(BeFalse())
	g.Expect(state.Pools).To(Equal([]backend.Pool{{ID: 1, Name: "Default", Targets: []int32{101, 102, 201}}}))
	g.Expect(state.Mirrors).To(BeEmpty())
	g.Expect(state.Sessions).To(BeEmpty())
	g.Expect(state.License).To(BeNil())
	server := func(role v1alpha1.Role, id int32, name, ip string, port int32) backend.Server {
		s := *serverOf(&state, role, id)
		g.Expect(s.UsedBytes).To(BeNumerically("<", s.CapacityBytes+1))
		s.UsedBytes, s.CapacityBytes = 0, 0
		g.Expect(s).To(Equal(backend.Server{Role: role, ID: id, Name: name, IP: ip, Port: port, Online: true, Version: "7.4.6", Transport: backend.TransportTCP}))
		return *serverOf(&state, role, id)
	}
	g.Expect(state.Servers).To(HaveLen(5))
	server(v1alpha1.RoleManagement, 1, "vm", "10.78.0.1", 7008)
	g.Expect(server(v1alpha1.RoleMetadata, 1, "meta-1", "10.78.0.1", 7011).CapacityBytes).To(BeEquivalentTo(oneDisk))
	server(v1alpha1.RoleMetadata, 2, "meta-2", "10.78.0.1", 7012)
	g.Expect(server(v1alpha1.RoleStorage, 1, "stor-1", "10.78.0.1", 7031).CapacityBytes).To(BeEquivalentTo(2 * oneDisk))
	server(v1alpha1.RoleStorage, 2, "stor-2", "10.78.1.1", 7032)

	g.Expect(state.Targets).To(HaveLen(5))
	for _, s := range state.Targets {
		g.Expect(s.CapacityBytes).To(BeEquivalentTo(oneDisk), "target %d", s.ID)
		g.Expect(s.UsedBytes).To(BeEquivalentTo(52<<30), "target %d", s.ID)
		s.UsedBytes, s.CapacityBytes = 0, 0
		g.Expect([]int64{s.UsedInodes, s.Inodes}).To(Equal([]int64{1_600_000, 16_800_000}), "15.1M are free, or a little more")
		s.UsedInodes, s.Inodes = 0, 0
		want := backend.Target{Role: s.Role, ID: s.ID, Online: true, Status: "Online", Consistency: "Good", Port: s.Port, IP: s.IP, Contacted: true}
		if s.Role == v1alpha1.RoleMetadata {
			want.ServerID, want.CapacityPool = s.ID, "Normal"
		} else {
			want.ServerID, want.PoolID, want.CapacityPool = s.ID/100, 1, "Low"
		}
		g.Expect(s).To(Equal(want))
	}
	g.Expect(targetOf(state, v1alpha1.RoleStorage, 201).IP).To(Equal("10.78.1.1"))
}

func TestTheManagementServiceAloneIsAFilesystemWithNothingInIt(t *testing.T) {
	for _, c := range []struct{ version, situation string }{{"7.4.6", "alone"}, {"8.3.1", "alone"}, {"8.3.1", "nolib"}} {
		t.Run(c.version+" "+c.situation, func(t *testing.T) {
			g := NewWithT(t)
			state := parsed(t, c.version, c.situation)
			g.Expect(state.Servers).To(HaveLen(1))
			g.Expect(state.Servers[0].Role).To(Equal(v1alpha1.RoleManagement))
			g.Expect(state.Servers[0].Online).To(BeTrue())
			g.Expect(state.Servers[0].IP).To(Equal("10.78.0.1"))
			g.Expect(state.Targets).To(BeEmpty())
			g.Expect(state.Pools).To(HaveLen(1))
			g.Expect(state.RootID).To(BeZero())
			g.Expect(state.License != nil).To(Equal(Is8(c.version)))
		})
	}
}

func TestPoolsAndBuddyGroupsAreReported(t *testing.T) {
	g := NewWithT(t)
	state := parsed(t, "7.4.6", "mirrored")
	g.Expect(state.Pools).To(Equal([]backend.Pool{
		{ID: 1, Name: "Default", Targets: []int32{101, 103, 104, 105, 106, 107, 108, 109, 110, 201}, Mirrors: []int32{1}},
		{ID: 2, Name: "ssd tier 1", Targets: []int32{102, 202}},
		{ID: 3, Name: "a-very-long-pool-name-of-30-chars-x"},
	}))
	g.Expect(state.Mirrors).To(ConsistOf(
		backend.Mirror{Role: v1alpha1.RoleStorage, ID: 1, Primary: 101, Secondary: 201},
		backend.Mirror{Role: v1alpha1.RoleMetadata, ID: 5, Primary: 1, Secondary: 2},
	))
	g.Expect(state.MetadataMirrored).To(BeTrue())
	g.Expect(state.RootID).To(BeEquivalentTo(5), "the buddy group owns the root directory")
	g.Expect(targetOf(state, v1alpha1.RoleStorage, 202).PoolID).To(BeEquivalentTo(2))
}

func TestAStorageServerThatWasKilled(t *testing.T) {
	for situation, want := range map[string]backend.Target{
		"probably-offline": {Status: "Probably-offline", Consistency: "Good", CapacityPool: "Low"},
		"offline":          {Status: "Offline", Consistency: "Good", CapacityPool: "Low"},
		"returned":         {Status: "Online", Online: true, Consistency: "Needs-resync", CapacityPool: "Emergency"},
	} {
		t.Run("is "+situation, func(t *testing.T) {
			g := NewWithT(t)
			state := parsed(t, "7.4.6", situation)
			got := targetOf(state, v1alpha1.RoleStorage, 201)
			g.Expect(backend.Target{Status: got.Status, Online: got.Online, Consistency: got.Consistency, CapacityPool: got.CapacityPool}).To(Equal(want))
			g.Expect(serverOf(&state, v1alpha1.RoleStorage, 2).Online).To(Equal(want.Online))
			g.Expect(serverOf(&state, v1alpha1.RoleStorage, 1).Online).To(BeTrue(), "the other one is none of its business")
			g.Expect(got.CapacityBytes > 0).To(Equal(want.Online), "the size of a target whose server is away is not known")
			g.Expect(got.Contacted).To(Equal(want.Online), "a server that is away has answered nothing")
			g.Expect(targetOf(state, v1alpha1.RoleStorage, 101).CapacityBytes).To(BeEquivalentTo(oneDisk), "those of others are")
			g.Expect(targetOf(state, v1alpha1.RoleStorage, 101).Contacted).To(BeTrue(), "the other server answered")
			g.Expect(state.Targets).To(HaveLen(14))
		})
	}
}

func TestTransientStatesAreReported(t *testing.T) {
	for name, c := range map[string]struct{ columns, status, consistency, capacity string }{
		"a target that is brought up to date":          {"          Online    resyncing          1   emergency", "Online", "Needs-resync", "Emergency"},
		"a target whose state is not known":            {"                <invalid_value>          1         low", "Unknown", "", "Low"},
		"a target that is in no class of space yet":    {"         Offline          Bad          1     unknown", "Offline", "Bad", ""},
		"a target that has not been heard of for long": {"Probably-offline         Good          1      normal", "Probably-offline", "Good", "Normal"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			outputs := transcript(t, "7.4.6", "healthy")
			outputs[askStorageTargets7] = []byte(strings.Replace(string(outputs[askStorageTargets7]),
				"          Online         Good          1         low        2", c.columns+"        2", 1))
			state, err := New("7.4.6", "10.78.0.1:7008").Parse(outputs)
			g.Expect(err).NotTo(HaveOccurred())
			got := targetOf(state, v1alpha1.RoleStorage, 201)
			g.Expect([]string{got.Status, got.Consistency, got.CapacityPool}).To(Equal([]string{c.status, c.consistency, c.capacity}))
			g.Expect(got.Online).To(Equal(c.status == "Online"))
		})
	}
}

func TestAServerThatHangsTakesNothingButSizesAway(t *testing.T) {
	g := NewWithT(t)
	// The commands that query servers were stopped after 3 s. One of them had already printed the line that is needed.
	state := parsed(t, "7.4.6", "hung")
	g.Expect(state.MetadataMirrored).To(BeTrue())
	g.Expect(state.Targets).To(HaveLen(14))
	g.Expect(targetOf(state, v1alpha1.RoleMetadata, 2).CapacityBytes).To(BeZero())
	g.Expect(targetOf(state, v1alpha1.RoleStorage, 101).CapacityBytes).To(BeEquivalentTo(oneDisk))
}

func TestTheStateOfABeeGFS8IsComplete(t *testing.T) {
	g := NewWithT(t)
	state := parsed(t, "8.3.1", "full")
	g.Expect(state.Servers).To(ConsistOf(
		backend.Server{Role: v1alpha1.RoleManagement, ID: 1, Name: "management", IP: "10.78.0.1", Port: 9108, Online: true, Version: "8.3.1", Transport: backend.TransportTCP},
		backend.Server{
			Role: v1alpha1.RoleMetadata, ID: 1, Name: "meta-1", IP: "10.78.0.1", Port: 9116, Online: true, Version: "8.3.1", Transport: backend.TransportRDMA,
			CapacityBytes: 12884901888, UsedBytes: 12884901888 - 9663676416,
		},
		backend.Server{
			Role: v1alpha1.RoleMetadata, ID: 2, Name: "meta-2", IP: "10.78.0.1", Port: 9117, Online: true, Version: "8.3.1", Transport: backend.TransportTCP,
			CapacityBytes: 12884901888, UsedBytes: 12884901888 - 1073741824,
		},
		backend.Server{
			Role: v1alpha1.RoleStorage, ID: 1, Name: "stor-1", IP: "10.78.0.2", Port: 9132, Online: true, Version: "8.3.1", Transport: backend.TransportTCP,
			CapacityBytes: 270582939648 + 3840755982336, UsedBytes: 270582939648 - 225162821632 + 3840755982336 - 3800000000000,
		},
		backend.Server{
			Role: v1alpha1.RoleStorage, ID: 2, Name: "stor-2", IP: "fd00::12", Port: 9132, Version: "8.3.1", Transport: backend.TransportTCP,
			CapacityBytes: 270582939648, UsedBytes: 270582939648 - 5368709120,
		},
	))
	g.Expect(state.Targets).To(HaveLen(6))
	g.Expect(targetOf(state, v1alpha1.RoleStorage, 201)).To(Equal(backend.Target{
		Role: v1alpha1.RoleStorage, ID: 201, ServerID: 2, PoolID: 1, IP: "fd00::12", Port: 9132, Status: "Offline",
		Consistency: "Needs-resync", CapacityPool: "Emergency", CapacityBytes: 270582939648, UsedBytes: 270582939648 - 5368709120,
		Inodes: 132120576, UsedInodes: 132120576 - 2621440,
	}))
	g.Expect(targetOf(state, v1alpha1.RoleStorage, 999)).To(Equal(backend.Target{
		Role: v1alpha1.RoleStorage, ID: 999, PoolID: 1, Status: "Offline", Consistency: "Good",
	}), "a target whose server is gone has neither")
	g.Expect(targetOf(state, v1alpha1.RoleMetadata, 1).CapacityPool).To(Equal("Low"))
	_, nearly := backend.FullMetadata(&state)
	g.Expect(nearly).To(Equal([]string{"metadata target 2 (91% of space, 95% of inodes in use)"}))
	g.Expect(state.Pools).To(Equal([]backend.Pool{
		{ID: 1, Name: "storage_pool_default", Targets: []int32{101, 201, 999}, Mirrors: []int32{1}},
		{ID: 2, Name: "ssd", Targets: []int32{102}},
		{ID: 3, Name: "empty"},
	}))
	g.Expect(state.Mirrors).To(ConsistOf(
		backend.Mirror{Role: v1alpha1.RoleStorage, ID: 1, Primary: 101, Secondary: 201},
		backend.Mirror{Role: v1alpha1.RoleMetadata, ID: 1, Primary: 1, Secondary: 2},
	))
	g.Expect(state.MetadataMirrored).To(BeTrue())
	g.Expect(state.RootID).To(BeEquivalentTo(1))
	g.Expect(state.Sessions).To(Equal([]backend.Session{{IP: "10.78.0.9", Connected: true, Transport: backend.TransportTCP}}))
	g.Expect(state.License).To(Equal(&backend.License{Message: "BeeGFS has no license loaded"}))
}

func TestTheRootDirectoryOfABeeGFS8MayHaveNoBuddyGroup(t *testing.T) {
	g := NewWithT(t)
	outputs := transcript(t, "8.3.1", "full")
	outputs[askRoot8] = []byte(`{"entry_id":"root","meta_mirror":"(unmirrored)","meta_node":"m:2"}` + "\n")
	state, err := New("8.3.1", "10.78.0.1:9110").Parse(outputs)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.MetadataMirrored).To(BeFalse())
	g.Expect(state.RootID).To(BeEquivalentTo(2))
}

func TestWithoutTheOwnerOfTheRootDirectoryABeeGFS8ReportsTheRest(t *testing.T) {
	g := NewWithT(t)
	outputs := transcript(t, "8.3.1", "full")
	outputs[askRoot8] = nil
	state, err := New("8.3.1", "10.78.0.1:9110").Parse(outputs)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.RootID).To(BeZero())
	g.Expect(state.MetadataMirrored).To(BeFalse())
	g.Expect(state.Targets).To(HaveLen(6))
}

func TestTheToolOf84NamesTheInterfacesInAnotherWay(t *testing.T) {
	g := NewWithT(t)
	outputs := transcript(t, "8.3.1", "full")
	var err error
	outputs[askNodes8], err = os.ReadFile(filepath.Join("testdata", "beegfs-8.4.0", "nodes.ndjson"))
	g.Expect(err).NotTo(HaveOccurred())
	state, err := New("8.3.1", "10.78.0.1:9110").Parse(outputs)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state).To(Equal(parsed(t, "8.3.1", "full")))
}

func TestALicenseIsReported(t *testing.T) {
	// The output of the tool of 8.3.1 for a license; no real license was available.
	const names = `"dns_names":["io.beegfs.storagepool","io.beegfs.mirroring"]`
	for name, c := range map[string]struct {
		answer string
		want   backend.License
	}{
		"that is valid": {
			`{"result":2,"data":{"type":4,` + names + `,"parent_data":{"type":3}}}` + "\n",
			backend.License{Valid: true, Features: []string{"io.beegfs.mirroring", "io.beegfs.storagepool"}},
		},
		"that is over": {
			`{"result":3,"data":{` + names + `},"message":"certificate has expired"}` + "\n",
			backend.License{Features: []string{"io.beegfs.mirroring", "io.beegfs.storagepool"}, Message: "certificate has expired"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			outputs := transcript(t, "8.3.1", "full")
			outputs[askLicense8] = []byte(c.answer)
			state, err := New("8.3.1", "10.78.0.1:9110").Parse(outputs)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(*state.License).To(Equal(c.want))
		})
	}
}

func TestAFailureOfACommandIsPartOfAnAnswer(t *testing.T) {
	const away = `Error: rpc error: code = Unavailable desc = connection error`
	for name, c := range map[string]struct {
		version string
		command int
		code    int
		stderr  string
		want    bool
	}{
		"when there is no metadata server yet":                      {"7.4.6", askMetaTargets7, 3, " [ERROR: No metadata servers found]\n", true},
		"when a server does not tell its size":                      {"7.4.6", askStorageSpace7, 3, " [ERROR from beegfs-storage stor-2 [ID: 2]: Communication error]\n", true},
		"when a server hangs":                                       {"7.4.6", askStorageSpace7, -1, "", true},
		"when the owner of the root directory hangs":                {"7.4.6", askRoot7, -1, "", true},
		"but not when targets are not listed":                       {"7.4.6", askStorageTargets7, 3, " [ERROR: Unknown storage server ID: 2]\n", false},
		"but not when the management service is away":               {"7.4.6", askManagement7, 3, "Management node communication failed: 10.0.0.1\n", false},
		"but not when the list of metadata targets took too long":   {"7.4.6", askMetaTargets7, -1, "", false},
		"when there is no buddy group":                              {"8.3.1", askMirrors8, 1, "Error: no mirrors configured\n", true},
		"but not when buddy groups could not be asked for":          {"8.3.1", askMirrors8, 1, away, false},
		"when the license can't be verified after the whole answer": {"8.3.1", askTargets8, 1, "Error: unable to verify licensed status: rpc error: code = Unknown desc = x\n", true},
		"but not when the management service went away just then":   {"8.3.1", askTargets8, 1, "Error: unable to verify licensed status: " + away, false},
		"but not when the management service of 8 is away":          {"8.3.1", askNodes8, 1, "Error: error getting node list from management: " + away, false},
		"when there is no license":                                  {"8.3.1", askLicense8, 1, "Error: No certificate loaded\n", true},
		"but not when the license could not be asked for":           {"8.3.1", askLicense8, 1, away, false},
		"but not when the question for it took too long":            {"8.3.1", askLicense8, -1, "", false},
		"but not when the secret is another one":                    {"8.3.1", askLicense8, 1, "Error: rpc error: code = Unauthenticated desc = x\n", false},
		"but not when the tool does not know its arguments":         {"8.3.1", askLicense8, 2, "Error: unknown flag: --raw\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(c.version, "10.0.0.1:8010").(backend.TolerantQuestions)
			NewWithT(t).Expect(p.Tolerates(c.command, c.code, c.stderr)).To(Equal(c.want))
		})
	}
}

func TestCommandsThatGoToServersGetLittleTime(t *testing.T) {
	g := NewWithT(t)
	for version, commands := range map[string][]int{"7.4.6": {askRoot7, askMetaSpace7, askStorageSpace7}, "8.3.1": {askRoot8}} {
		p := New(version, "10.0.0.1:8010").(backend.TolerantQuestions)
		for i := range p.Commands() {
			g.Expect(p.Limit(i) == 3*time.Second).To(Equal(slices.Contains(commands, i)), "%s %d", version, i)
		}
	}
}

// change replaces one answer of a situation.
type change struct {
	version, situation string
	command            int
	from, to           string
	says               string
}

func TestAnAnswerThatIsNotUnderstoodIsAnErrorThatNamesIt(t *testing.T) {
	for name, c := range map[string]change{
		"nothing at all": {"7.4.6", "healthy", askStorageTargets7, "*", "", "--listtargets --nodetype=storage --state --storagepools --pools: its answer ends after line 0"},
		"only columns":   {"7.4.6", "healthy", askStorageTargets7, "     101*", "", "which should be the same"},
		"a line that is cut off": {
			"7.4.6", "healthy", askStorageTargets7, "low        2\n", "low",
			`beegfs-ctl --listtargets --nodetype=storage --state --storagepools --pools: line 5 is cut off: "     201           Online         Good          1         low"`,
		},
		"a target that vanished":                {"7.4.6", "healthy", askStorageTargets7, "     201*", "", "BeeGFS lists the targets of the storage pools [101 102 201] and the storage targets [101 102], which should be the same"},
		"a metadata target that vanished":       {"7.4.6", "healthy", askMetaTargets7, "       2*", "", "the metadata servers [1 2] and the metadata targets [1]"},
		"a pool that vanished":                  {"7.4.6", "mirrored", askPools7, "      2         ssd*", "", "which should be the same"},
		"a pool's list that vanished in part":   {"7.4.6", "mirrored", askPools7, "                           109,110*", "", "without the last storage pool"},
		"a buddy group that vanished":           {"7.4.6", "mirrored", askStorageGroups7, "*", "", "BeeGFS lists the buddy groups of the storage pools [1] and the buddy groups of storage targets []"},
		"a server that vanished":                {"7.4.6", "healthy", askStorage7, "stor-2*", "\nNumber of nodes: 1\n", "target 201 is on server 2, and does not list that server"},
		"fewer servers than are counted":        {"7.4.6", "healthy", askStorage7, "stor-2*", "\nNumber of nodes: 2\n", "line 6 should be the number of nodes, 1"},
		"no count of servers":                   {"7.4.6", "healthy", askStorage7, "\nNumber*", "", "without the number of nodes"},
		"servers that end in the middle":        {"7.4.6", "healthy", askStorage7, "   Interfaces: \n   + bgq*", "", "without the interfaces of stor-2"},
		"a target that is listed twice":         {"7.4.6", "healthy", askStorageTargets7, "     102 ", "     101 ", "number 101 twice among the storage targets"},
		"a target in two pools":                 {"7.4.6", "mirrored", askStorageTargets7, "202           Online         Good          2", "202           Online         Good          1", "lists target 202 in pool 2, and says that it is in pool 1"},
		"a state that is new":                   {"7.4.6", "healthy", askStorageTargets7, "Online", "Sleeping", "has a state that is not known"},
		"other columns":                         {"7.4.6", "healthy", askStorageTargets7, "St. Pool", "Color  ", "should be the columns"},
		"a number that is none":                 {"7.4.6", "healthy", askStorageTargets7, "     101 ", "     1o1 ", `"1o1" in the place of a number`},
		"a complaint between the lines":         {"7.4.6", "healthy", askMeta7, "meta-2 [ID", "(0) 14:48:05 Main [Messaging (RPC)] >> Communication error\nmeta-2 [ID", "line 5 should be the name and the number of a node"},
		"a license notice where a table was":    {"7.4.6", "healthy", askPools7, "Pool ID", "-----\n| BeeGFS Enterprise Feature |\nPool ID", "should be the columns"},
		"no word on the root directory":         {"7.4.6", "mirrored", askRoot7, "*", "", "did not say whether the root directory is mirrored"},
		"sizes that are none":                   {"7.4.6", "healthy", askStorageSpace7, "252.0GiB", "252.0XiB", "has sizes that are none"},
		"a target list of 8 that is cut off":    {"8.3.1", "full", askTargets8, `,"storage_pool":"s:1"*`, "", "target list --state --capacity: line 1 is cut off"},
		"a target of 8 that vanished":           {"8.3.1", "full", askTargets8, `{"cap_pool":"Emergency","consistency":"Needs-resync"*`, "", "which should be the same"},
		"a pool of 8 that vanished":             {"8.3.1", "full", askPools8, `{"alias":"ssd"*`, "", "which should be the same"},
		"no nodes":                              {"8.3.1", "full", askNodes8, "*", "", "without the management service"},
		"a column that is new":                  {"8.3.1", "full", askPools8, `{"alias":"ssd",`, `{"alias":"ssd","color":"red",`, `line 2 can't be read (json: unknown field "color")`},
		"a column that is missing":              {"8.3.1", "full", askPools8, `"mirrors":"",`, "", "has not all columns that were asked for"},
		"a table where JSON was":                {"8.3.1", "full", askNodes8, `{"alias":"c1"`, "ALIAS  ID\n{", "line 1 can't be read"},
		"a type of node that is new":            {"8.3.1", "full", askNodes8, `"node_type":3`, `"node_type":9`, "has no id that is known"},
		"a state of 8 that is new":              {"8.3.1", "full", askTargets8, `"reachability":"Online"`, `"reachability":"Asleep"`, "has a state that is not known"},
		"a unit where bytes were":               {"8.3.1", "full", askTargets8, `"space":"12884901888"`, `"space":"12.0GiB"`, "has sizes that are none"},
		"a unit where inodes were":              {"8.3.1", "full", askTargets8, `"inodes":"6291456"`, `"inodes":"6.3M"`, "has numbers of inodes that are none"},
		"more free inodes than there are":       {"8.3.1", "full", askTargets8, `"inodes_free":"314572"`, `"inodes_free":"6291457"`, "has numbers of inodes that are none"},
		"no numbers of inodes":                  {"8.3.1", "full", askTargets8, `"inodes":"6291456",`, "", "has not all columns that were asked for"},
		"a metadata target on a storage server": {"8.3.1", "full", askTargets8, `"node":"m:1"`, `"node":"s:1"`, `"s:1" in the place of a number of its own kind`},
		"a buddy group of 8 that vanished":      {"8.3.1", "full", askMirrors8, `{"id":{"num_id":1,"node_type":3}*`, "", "which should be the same"},
		"a license that is cut off":             {"8.3.1", "full", askLicense8, "*", `{"result":2` + "\n", "can't read its answer"},
		"another directory than the root":       {"8.3.1", "full", askRoot8, `"root"`, `"3-1234"`, "should be about the root directory"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			outputs := transcript(t, c.version, c.situation)
			outputs[c.command] = []byte(c.in(string(outputs[c.command])))
			_, err := New(c.version, "10.78.0.1:9110").Parse(outputs)
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
	t.Run("too few answers", func(t *testing.T) {
		_, err := New("7.4.6", "10.78.0.1:8008").Parse(nil)
		NewWithT(t).Expect(err).To(MatchError("0 answers of BeeGFS to 12 commands"))
	})
}

// in replaces the first occurrence of the text; with a star at the end of the text, also all that follows.
func (c change) in(answer string) string {
	from, rest := strings.CutSuffix(c.from, "*")
	before, after, found := strings.Cut(answer, from)
	if !found {
		panic("the answer has no " + c.from)
	}
	if rest {
		after = ""
	}
	return before + c.to + after
}

// A client is recognized by its number in both answers. The quoted text has the form of 7.4.6 (ModeGetNodes.cpp, GenericDebugMsgEx.cpp) and
// of the tool of 8.3.1.
func TestClientsWithOpenFilesOnAStorageServerAreListed(t *testing.T) {
	for version, c := range map[string]struct{ open, clients, listed string }{
		"7.4.6": {
			"/opt/beegfs/sbin/beegfs-ctl --cfgFile=/etc/parallelfs/beegfs-client.conf --genericdebug --nodetype=storage --nodeid=3 listopenfiles",
			"/opt/beegfs/sbin/beegfs-ctl --cfgFile=/etc/parallelfs/beegfs-client.conf --listnodes --nodetype=client",
			"4A4-5F3A1B2C-c1 [ID: 7]\nc 2 [ID: 8]\n",
		},
		"8.3.1": {
			"/opt/beegfs/sbin/beegfs --mgmtd-addr=10.0.0.1:8010 --auth-file=/etc/parallelfs-auth/conn.auth --tls-disable --mount=none debug s:3 listopenfiles",
			"/opt/beegfs/sbin/beegfs --mgmtd-addr=10.0.0.1:8010 --auth-file=/etc/parallelfs-auth/conn.auth --tls-disable --mount=none node list " +
				"--node-type=client --output=ndjson --columns=id,alias --raw",
			`{"alias":"4A4-5F3A1B2C-c1","id":{"num_id":7,"node_type":1}}` + "\n" + `{"alias":"c 2","id":{"num_id":8,"node_type":1}}` + "\n",
		},
	} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			q := NewTool(version, "10.0.0.1:8010").Quiet(3, []int32{5})
			g.Expect(strings.Join(q.Open, " ")).To(Equal(c.open))
			g.Expect(q.Also).To(HaveLen(1))
			g.Expect(q.Also[0].Server).To(Equal("metadata server 5"))
			g.Expect(strings.Join(q.Also[0].Open, " ")).To(Equal(strings.NewReplacer("storage --nodeid=3", "meta --nodeid=5", "s:3", "m:5").Replace(c.open)))
			g.Expect(strings.Join(q.Clients, " ")).To(Equal(c.clients))
			found := func(expression, text, first, second string) (out [][2]string) {
				e := regexp.MustCompile(expression)
				for _, m := range e.FindAllStringSubmatch(text, -1) {
					out = append(out, [2]string{m[e.SubexpIndex(first)], m[e.SubexpIndex(second)]})
				}
				return out
			}
			g.Expect(found(q.Client, c.listed, "id", "name")).To(Equal([][2]string{{"7", "4A4-5F3A1B2C-c1"}, {"8", "c 2"}}))
			answer := "Command: listopenfiles\nResponse:\nFound 3 sessions.\n\n7: 2\n8: 11\n\nFinal results: 13 open files in 3 checked sessions\n"
			g.Expect(found(q.Session, answer, "id", "files")).To(Equal([][2]string{{"7", "2"}, {"8", "11"}}))
			g.Expect(answer).To(MatchRegexp(q.Answered))
			g.Expect("Unknown/invalid operation\n").NotTo(MatchRegexp(q.Answered))
			// This is the output of a real beegfs-meta 7.4.6 for a file that was open, and not yet read or written.
			answer = "Command: listopenfiles\nResponse:\nFound 2 non-mirrored sessions and 0 mirrored sessions.\n\nNon-mirrored sessions:\n1: 1\n" +
				"Mirrored sessions:\n\nFinal results: 1 open files in 2 checked sessions\n"
			g.Expect(found(q.Session, answer, "id", "files")).To(Equal([][2]string{{"1", "1"}}))
			g.Expect(answer).To(MatchRegexp(q.Answered))
		})
	}
}

func TestInterfacesSayWhetherAServerOffersRDMA(t *testing.T) {
	g := NewWithT(t)
	tcp := parsed(t, "7.4.6", "healthy")
	for _, s := range tcp.Servers {
		g.Expect(s.Transport).To(Equal(backend.TransportTCP), s.Name)
	}
	// A real server with an adapter lists each interface twice (ModeGetNodes.cpp, 7.4.6).
	outputs := transcript(t, "7.4.6", "healthy")
	for _, question := range []int{askStorage7, askClients7} {
		outputs[question] = bytes.ReplaceAll(outputs[question], []byte("   + bgp[ip addr: 10.78.0.1; type: TCP]\n"),
			[]byte("   + bgp[ip addr: 10.78.0.1; type: RDMA]\n   + bgp[ip addr: 10.78.0.1; type: TCP]\n"))
	}
	state, err := New("7.4.6", "10.78.0.1:9110").Parse(outputs)
	g.Expect(err).NotTo(HaveOccurred())
	for _, s := range state.Servers {
		g.Expect(s.Transport).To(Equal(map[v1alpha1.Role]string{v1alpha1.RoleStorage: backend.TransportRDMA}[s.Role]+
			map[v1alpha1.Role]string{v1alpha1.RoleMetadata: backend.TransportTCP, v1alpha1.RoleManagement: backend.TransportTCP}[s.Role]), s.Name)
	}
	for _, version := range []string{"8.3.1", "8.4.0"} {
		outputs := transcript(t, "8.3.1", "full")
		if version == "8.4.0" {
			raw, err := os.ReadFile(filepath.Join("testdata", "beegfs-8.4.0", "nodes.ndjson"))
			g.Expect(err).NotTo(HaveOccurred())
			outputs[askNodes8] = raw
		}
		state, err := New(version, "10.78.0.1:9110").Parse(outputs)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(serverOf(&state, v1alpha1.RoleMetadata, 1).Transport).To(Equal(backend.TransportRDMA), version)
		g.Expect(serverOf(&state, v1alpha1.RoleMetadata, 2).Transport).To(Equal(backend.TransportTCP), version)
		g.Expect(state.Sessions).To(HaveEach(HaveField("Transport", backend.TransportTCP)))
	}
}
