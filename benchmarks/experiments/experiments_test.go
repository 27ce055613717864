package experiments_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/reference"
	"parallelfs.dev/operator/benchmarks/registry"
	"parallelfs.dev/operator/benchmarks/sweep"
)

// experiment is what a manifest holds.
type experiment struct {
	fileSystem v1alpha1.FileSystem
	run        v1alpha1.BenchmarkRun
}

// load decodes a manifest, and refuses fields that the API does not have.
func load(t *testing.T, name string) experiment {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	strict := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	text, err := os.ReadFile(name + ".yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var out experiment
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object, _, err := strict.Decode([]byte(document), nil, nil)
		g.Expect(err).NotTo(HaveOccurred())
		switch o := object.(type) {
		case *v1alpha1.FileSystem:
			out.fileSystem = *o
		case *v1alpha1.BenchmarkRun:
			out.run = *o
		default:
			g.Expect(o).To(BeAssignableToTypeOf(&corev1.Namespace{}))
		}
	}
	return out
}

func TestTheManifestsExpressTheirExperimentsWhole(t *testing.T) {
	for name, test := range map[string]struct {
		table string
		// unpublished are points that the experiment ran, by its text, and that its table leaves out.
		unpublished []string
		// command is that of the point with records of 64k and 4 processes per client, as published, in the operator's order.
		processes, command string
		// output is what iozone printed at that point, with smaller files.
		output, fileSize string
		metrics          []string
	}{
		"moosefs-2017-single": {
			table: reference.MooseFSSingle, unpublished: []string{"128k 16", "256k 16", "512k 16"},
			processes: "4", command: "iozone -t 4 -r 64k -s 1048576k -i 0 -i 1 -i 2 -I -e",
			output: "single-4-processes.txt", fileSize: "8192",
			metrics: []string{"write", "rewrite", "read", "reread", "randomRead", "randomWrite"},
		},
		"moosefs-2017-distributed": {
			table:     reference.MooseFSDistributed,
			processes: "32", command: "iozone -t 32 -r 64k -s 1048576k -i 0 -i 1 -i 2 -I -e -c -T -+n -+m $(HOSTS_FILE) -+h $(LAUNCHER_IP)",
			output: "distributed-32-threads.txt", fileSize: "32768",
			metrics: []string{"write", "read", "randomRead", "randomWrite"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			manifest := load(t, name)
			spec := &manifest.run.Spec
			tool := registry.Tools()[spec.Tool]
			points, err := sweep.Expand(tool, spec)
			g.Expect(err).NotTo(HaveOccurred())
			rows, err := reference.Load(test.table)
			g.Expect(err).NotTo(HaveOccurred())

			var published, ours []string
			for _, row := range rows {
				published = append(published, key(row.Parameters))
			}
			for _, p := range points {
				if k := key(p.Parameters); !slices.Contains(test.unpublished, k) {
					ours = append(ours, k)
				}
				_, err := tool.Command(spec, p)
				g.Expect(err).NotTo(HaveOccurred(), "every point can be run")
			}
			g.Expect(ours).To(Equal(published), "the points are those of the table, in its order")
			g.Expect(points).To(HaveLen(len(published) + len(test.unpublished)))
			g.Expect(spec.Repetitions).To(Equal(int32(5)))
			g.Expect(spec.Statistic).To(Equal(v1alpha1.StatisticTrimmedMean))

			at := slices.IndexFunc(points, func(p benchmarks.Point) bool { return key(p.Parameters) == "64k "+test.processes })
			command, err := tool.Command(spec, points[at])
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(strings.Join(command.Argv, " ")).To(Equal(test.command))

			text, err := os.ReadFile("../iozone/testdata/" + test.output)
			g.Expect(err).NotTo(HaveOccurred())
			large := regexp.MustCompile(`(File size set to |writes a )`+test.fileSize+` `).ReplaceAll(text, []byte("${1}1048576 "))
			samples, err := tool.Parse(spec, points[at], large)
			g.Expect(err).NotTo(HaveOccurred())
			var metrics []string
			for _, s := range samples {
				if s.Unit == "kB/s" {
					metrics = append(metrics, s.Name)
				}
			}
			g.Expect(metrics).To(Equal(test.metrics))
			for _, figure := range rows[0].Figures {
				// Tables of a paper are in MB/s where the tool prints kB/s.
				unit := strings.Replace(figure.Unit, "MB/s", "kB/s", 1)
				g.Expect(slices.ContainsFunc(samples, func(s benchmarks.Sample) bool { return s.Name == figure.Name && s.Unit == unit })).
					To(BeTrue(), "%s in %s is measured", figure.Name, unit)
			}
		})
	}
}

// key names a point by what the tables vary.
func key(parameters map[v1alpha1.SweepName]string) string {
	return parameters["iozone.recordSize"] + " " + parameters["processes"]
}

func TestTheRunsMeasureTheFileSystemBesideThem(t *testing.T) {
	for name, test := range map[string]struct {
		mode    v1alpha1.IOzoneMode
		clients int32
	}{
		"moosefs-2017-single":      {v1alpha1.IOzoneSingleClient, 0},
		"moosefs-2017-distributed": {v1alpha1.IOzoneDistributed, 8},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			manifest := load(t, name)
			fs, run := manifest.fileSystem, manifest.run
			g.Expect(run.Name).To(Equal(name))
			g.Expect(run.Namespace).To(Equal(fs.Namespace))
			g.Expect(run.Spec.FileSystem).To(Equal(v1alpha1.BenchmarkTarget{Name: fs.Name, StoragePool: fs.Spec.StoragePools[0].Name}))
			g.Expect(run.Spec.Clients.NodeSelector).To(Equal(fs.Spec.Clients.NodeSelector))
			g.Expect(run.Spec.Clients.Count).To(Equal(test.clients))
			g.Expect(run.Spec.IOzone.Mode).To(Equal(test.mode))
			g.Expect(fs.Spec.StoragePools[0].Copies).To(Equal(int32(1)), "goal 1")
		})
	}
}
