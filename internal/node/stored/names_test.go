package stored_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/directory"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// frozen lists the names that the operator stores in objects and on disks, as literals. This list only grows: an older release has written
// these names, and a newer one must find them.
var frozen = map[string][]string{
	"finalizers": {"parallelfs.dev/finalizer"},
	"labels": {
		"parallelfs.dev/agent", "parallelfs.dev/backup-of", "parallelfs.dev/benchmark-job", "parallelfs.dev/benchmark-role", "parallelfs.dev/benchmarkrun",
		"parallelfs.dev/benchmarksuite", "parallelfs.dev/check-of", "parallelfs.dev/component", "parallelfs.dev/filesystem", "parallelfs.dev/guard-of",
		"parallelfs.dev/guard-owner", "parallelfs.dev/guarded", "parallelfs.dev/image", "parallelfs.dev/images-of", "parallelfs.dev/node",
		"parallelfs.dev/metadata-copies-of", "parallelfs.dev/recovery-of", "parallelfs.dev/slot", "parallelfs.dev/storage-pool",
		"parallelfs.node-restriction.kubernetes.io",
	},
	"annotations": {
		"parallelfs.dev/accept-loss", "parallelfs.dev/allow-maintenance", "parallelfs.dev/applied-hash", "parallelfs.dev/back-up", "parallelfs.dev/backup",
		"parallelfs.dev/backup-claim", "parallelfs.dev/backup-directory", "parallelfs.dev/backup-node", "parallelfs.dev/backup-object-store", "parallelfs.dev/benchmark", "parallelfs.dev/benchmark-admitted",
		"parallelfs.dev/benchmark-nodes", "parallelfs.dev/benchmark-placement", "parallelfs.dev/benchmark-published", "parallelfs.dev/benchmark-raw-bytes",
		"parallelfs.dev/asked", "parallelfs.dev/benchmark-asked", "parallelfs.dev/benchmark-reading", "parallelfs.dev/benchmark-trust",
		"filesystem.parallelfs.dev/confirm-delete", "parallelfs.dev/accept-device", "parallelfs.dev/certificate", "parallelfs.dev/check", "parallelfs.dev/drop-caches", "parallelfs.dev/give-up", "parallelfs.dev/machine-is-off", "parallelfs.dev/management", "parallelfs.dev/metadata-mirrored", "parallelfs.dev/recover-from",
		"parallelfs.dev/recover-metadata", "parallelfs.dev/recovery-told", "parallelfs.dev/rendered-hash", "parallelfs.dev/replace-disk", "parallelfs.dev/suite-uid",
		"parallelfs.dev/take-up-node-image", "parallelfs.dev/template-hash", "parallelfs.dev/told", "parallelfs.dev/version",
	},
	"formats":               {"parallelfs.dev/dump-v1", "parallelfs.dev/results/v1"},
	"files and directories": {".parallelfs-benchmarks", ".parallelfs-record.json", ".parallelfs-target.json", ".parallelfs.json", "/var/lib/parallelfs/agent.lock", "/var/lib/parallelfs/nodes", "/var/lib/parallelfs/targets"},
}

// ours matches the operator's own names that can occur in an object or on a disk.
var ours = regexp.MustCompile(`^((filesystem\.)?parallelfs\.dev/.+|parallelfs\.node-restriction\.kubernetes\.io|\.parallelfs.*|/var/lib/parallelfs/.+)$`)

func TestNamesThatAreStoredStayAsTheyAre(t *testing.T) {
	g := NewWithT(t)
	var known []string
	for _, names := range frozen {
		known = append(known, names...)
	}
	// Temporary names don't count.
	var found []string
	for _, value := range constants(t) {
		if ours.MatchString(value) && value != ".parallelfs-" {
			found = append(found, value)
		}
	}
	slices.Sort(known)
	slices.Sort(found)
	g.Expect(slices.Compact(found)).To(Equal(known), "what is new is added to this list; what is in it never changes")
}

// constants returns the values of all string constants in the operator's code.
func constants(t *testing.T) (values []string) {
	t.Helper()
	g := NewWithT(t)
	for _, folder := range []string{"api", "benchmarks", "cmd", "controllers", "internal"} {
		g.Expect(filepath.WalkDir(filepath.Join("..", "..", "..", folder), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, d := range file.Decls {
				if c, is := d.(*ast.GenDecl); is && c.Tok == token.CONST {
					ast.Inspect(c, func(n ast.Node) bool {
						if l, is := n.(*ast.BasicLit); is && l.Kind == token.STRING {
							value, err := strconv.Unquote(l.Value)
							g.Expect(err).NotTo(HaveOccurred())
							values = append(values, value)
						}
						return true
					})
				}
			}
			return nil
		})).To(Succeed())
	}
	return values
}

func TestPathsAndNamesOfFilesAndObjectsStayAsTheyAre(t *testing.T) {
	g := NewWithT(t)
	scratch := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "scratch"}}
	for _, c := range []struct{ is, stays string }{
		{spec.TargetMarkerFile, ".parallelfs-target.json"},
		{spec.TargetRecordFile, ".parallelfs-record.json"},
		{spec.MarkerFile, ".parallelfs.json"},
		{spec.NodeFileName, "node.json"},
		{spec.BackupManifestFile, "manifest.json"},
		{spec.BackupRecordFile, "record.json.gz"},
		{spec.BackupNameLayout, "20060102-150405"},
		{spec.BenchmarkHome, ".parallelfs-benchmarks"},
		{spec.TargetPath("storage", "scratch", "a"), "/var/lib/parallelfs/targets/storage.scratch/a"},
		{spec.MountsDirectory("storage", "scratch"), "/var/lib/parallelfs/mounts/storage.scratch"},
		{spec.NodeDirectory("storage", "scratch"), "/var/lib/parallelfs/nodes/storage.scratch"},
		{spec.ModprobeDirectory + "/" + spec.ModuleOptionsFile("storage", "scratch"), "/etc/modprobe.d/parallelfs-storage.scratch.conf"},
		{spec.ModuleOptionsHeading, "# Written by ParallelFS Operator "},
		{backend.StateRoot(scratch), "/var/lib/parallelfs/storage.scratch"},
		{backend.Ledger(scratch, "master"), "/var/lib/parallelfs/storage.scratch/ledger-master.json"},
		{spec.MemberName("chunkserver/ssd"), "chunkserver-ssd"},
		{plan.LabelPrefix, "pfs-"},
		{plan.TargetName("scratch", v1alpha1.RoleStorage, "ssd", "n1", "wwn-0x5000c500a1b2c3d4"), "scratch-ssd-093b004a85476148"},
		{backend.FileSystemNodeName("scratch", "n1"), "scratch-n1-331ac9316742474d"},
		{string(spec.MarkerPreparing), "Preparing"},
		{string(spec.MarkerInitialized), "Initialized"},
		{v1alpha1.GroupVersion.String(), "parallelfs.dev/v1alpha1"},
		{v1alpha1.ManagedBy, "parallelfs-operator"},
	} {
		g.Expect(c.is).To(Equal(c.stays))
	}
	g.Expect([]int{spec.TargetMarkerVersion, spec.TargetRecordVersion, spec.NodeFileVersion, spec.MarkerVersion, directory.LedgerVersion, spec.BackupFormat}).To(HaveEach(1),
		"a version that is newer needs a fixture of its own (testdata/v2), beside that of each older one")
}
