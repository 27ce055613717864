package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// fuzzParse replaces one answer of a situation by any text. A state that Parse accepts must be whole. It has every target that a pool
// lists, every metadata server with its target where the version promises it, and no number twice. The same answer leads to the same state.
func fuzzParse(f *testing.F, version, situation string) {
	f.Helper()
	p, said := New(version, "10.78.0.1:9110"), transcript(f, version, situation)
	for command, output := range said {
		f.Add(command, output)
		f.Add(command, output[:len(output)/2])
	}
	f.Fuzz(func(t *testing.T, command int, output []byte) {
		outputs := slices.Clone(said)
		outputs[((command%len(outputs))+len(outputs))%len(outputs)] = output
		state, err := p.Parse(outputs)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without a word")
			}
			return
		}
		g := NewWithT(t)
		var pooled []int32
		for _, pool := range state.Pools {
			pooled = append(pooled, pool.Targets...)
		}
		g.Expect(ids(state, v1alpha1.RoleStorage)).To(ConsistOf(pooled))
		for _, role := range []v1alpha1.Role{v1alpha1.RoleMetadata, v1alpha1.RoleStorage} {
			numbers := ids(state, role)
			slices.Sort(numbers)
			g.Expect(slices.Compact(slices.Clone(numbers))).To(Equal(numbers))
		}
		for _, target := range state.Targets {
			g.Expect(target.ID).To(BeNumerically(">", 0))
			g.Expect(target.UsedBytes).To(And(BeNumerically(">=", 0), BeNumerically("<=", target.CapacityBytes)))
			g.Expect(target.ServerID == 0 || serverOf(&state, target.Role, target.ServerID) != nil).To(BeTrue())
		}
		again, err := p.Parse(outputs)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again).To(Equal(state))
	})
}

func ids(state backend.State, role v1alpha1.Role) []int32 {
	var out []int32
	for _, t := range state.Targets {
		if t.Role == role {
			out = append(out, t.ID)
		}
	}
	return out
}

func FuzzAnswersOfBeegfsCtl(f *testing.F) { fuzzParse(f, "7.4.6", "mirrored") }

func FuzzAnswersOfTheToolOfVersion8(f *testing.F) { fuzzParse(f, "8.3.1", "full") }

// large returns the output of the tools for 80 metadata servers, and for 100 storage servers with 10 targets each.
func large(version string) [][]byte {
	answers := make([]strings.Builder, max(len(files7), len(files8)))
	say := func(command int, format string, args ...any) { fmt.Fprintf(&answers[command], format+"\n", args...) }
	if Is8(version) {
		say(askNodes8, `{"alias":"management","id":{"num_id":1,"node_type":4},"nics":"ethernet:e (10.0.0.1:8008,8010)"}`)
		for i := 1; i <= 80; i++ {
			say(askNodes8, `{"alias":"meta-%d","id":{"num_id":%[1]d,"node_type":2},"nics":"ethernet:e (10.0.1.%[1]d:8016)"}`, i)
			say(askTargets8, `{"cap_pool":"Normal","consistency":"Good","id":{"num_id":%d,"node_type":2},"inodes":"1000",`+
				`"inodes_free":"900","node":"m:%[1]d","reachability":"Online","space":"1000","space_free":"900","storage_pool":"(n/a)"}`, i)
		}
		var all []string
		for i := range 1000 {
			server := i/10 + 1
			if i%10 == 0 {
				say(askNodes8, `{"alias":"storage-%d","id":{"num_id":%[1]d,"node_type":3},"nics":"ethernet:e (10.0.2.%[1]d:8032)"}`, server)
			}
			all = append(all, fmt.Sprintf("s:%d", i+1))
			say(askTargets8, `{"cap_pool":"Normal","consistency":"Good","id":{"num_id":%d,"node_type":3},"inodes":"1000",`+
				`"inodes_free":"900","node":"s:%d","reachability":"Online","space":"1000","space_free":"900","storage_pool":"s:1"}`, i+1, server)
		}
		say(askPools8, `{"alias":"default","id":{"num_id":1,"node_type":3},"mirrors":"","targets":%q}`, strings.Join(all, ","))
		return bytesOf(answers[:len(files8)])
	}
	node := func(command int, name string, id int) {
		say(command, "%s [ID: %d]\n   Ports: UDP: 8000; TCP: 8000\n   Interfaces: \n   + e[ip addr: 10.0.0.%d; type: TCP]", name, id, id)
	}
	node(askManagement7, "management", 1)
	say(askMetaTargets7, "TargetID     Reachability  Consistency   Cap. Pool   NodeID\n========     ============  ===========   =========   ======")
	for i := 1; i <= 80; i++ {
		node(askMeta7, "meta", i)
		say(askMetaTargets7, "%8d           Online         Good      normal %8[1]d", i)
	}
	say(askStorageTargets7, "TargetID     Reachability  Consistency   St. Pool   Cap. Pool   NodeID\n========     ============  ===========   ========   =========   ======")
	say(askStorageSpace7, "TargetID        Total         Free    %%      ITotal       IFree    %%   NodeID\n========        =====         ====    =      ======       =====    =   ======")
	say(askPools7, "%7s %18s %28s %28s\n%[5]s %s %s %[7]s", "Pool ID", "Pool Description", "Targets", "Buddy Groups",
		strings.Repeat("=", 7), strings.Repeat("=", 18), strings.Repeat("=", 28))
	for i := range 1000 {
		server := i/10 + 1
		if i%10 == 0 {
			node(askStorage7, "storage", server)
		}
		say(askStorageTargets7, "%8d           Online         Good          1      normal %8d", i+1, server)
		say(askStorageSpace7, "%8d     252.0GiB     200.0GiB  79%%       16.8M       15.1M  90%% %8d", i+1, server)
		id, name, more := "", "", ","
		if i == 0 {
			id, name = "1", "Default"
		}
		if i == 999 {
			more = ""
		}
		say(askPools7, "%7s %18s %-28s %-28s", id, name, fmt.Sprint(i+1)+more, "")
	}
	for command, count := range map[int]int{askManagement7: 1, askMeta7: 80, askStorage7: 100, askClients7: 0} {
		say(command, "\nNumber of nodes: %d", count)
	}
	say(askMeta7, "Root: 1")
	return bytesOf(answers[:len(files7)])
}

func bytesOf(answers []strings.Builder) [][]byte {
	var out [][]byte
	for i := range answers {
		out = append(out, []byte(answers[i].String()))
	}
	return out
}

func BenchmarkParseOf80MetadataServersAnd1000Targets(b *testing.B) {
	for _, version := range []string{"7.4.6", "8.3.1"} {
		b.Run(version, func(b *testing.B) {
			p, outputs := New(version, "10.0.0.1:8010"), large(version)
			for b.Loop() {
				state, err := p.Parse(outputs)
				if err != nil || len(state.Targets) != 1080 || len(state.Servers) != 181 {
					b.Fatalf("%d targets, %d servers: %v", len(state.Targets), len(state.Servers), err)
				}
			}
		})
	}
}
