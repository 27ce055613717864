//go:build envtest

package envtest_test

// fullRuns holds manifests with a value for every field, one for each tool, from which everyBoundRefusals makes its rows.
var fullRuns = map[string]string{
	"run": `
spec:
  target: {fileSystem: {name: scratch, storagePool: ssd}}
  tool: mdtest
  mdtest: {items: 4, depth: 2, branch: 3, leafOnly: true, uniqueDirectories: true, filesOnly: true, writeBytes: 4Ki, readBytes: 4Ki,
    syncWrites: true, stride: 1, iterations: 3, phases: [Create, Stat], args: [-v]}
  image: example.org/mdtest@sha256:0
  clients: {nodeSelector: {client: ""}, count: 4, spread: Packed, maxProcessesPerNode: 32, oversubscribe: true}
  processes: 4
  sweep:
  - {name: processes, values: ["1", "2"]}
  - {name: clients, range: {from: "1", to: "4", step: "1"}}
  - {name: mdtest.writeBytes, powersOfTwo: {from: 4Ki, to: 64Ki}}
  sweepMode: Cartesian
  derive: [{name: mdtest.items, cel: "512 / processes"}]
  order: Shuffled
  seed: 7
  warmUp: {of: Each, repetitions: 1}
  caches: {drop: All, before: Phases}
  pause: 10s
  repetitions: 3
  until: {confidencePercent: "2.5", metrics: [File creation], maxRepetitions: 20}
  statistic: Median
  along: processes
  baseline: {published: beegfs-2015-single-raid0, variant: one, tolerancePercent: "5", metrics: [File creation], allowDifferences: true}
  expect:
  - {name: creates, metric: File creation, unit: ops/s, where: [{name: processes, value: 32}], atLeast: "1000", atMost: "2000.5"}
  - {name: stats, metric: File stat, value: "1000", tolerancePercent: "2.5"}
  limits: {pointTimeout: 30m, timeout: 12h, retries: 1, invalidRetries: 2}
  results:
    persistentVolumeClaim: {name: results, path: a/b}
    objectStore: {endpoint: "https://s3.example.org", bucket: results, prefix: a/b, region: eu, secretName: s3}
  queueName: gpu
  priorityClassName: high
  pods:
    labels: {cost-center: "7"}
    annotations: {example.org/scrape: "true"}
    imagePullSecrets: [{name: registry}]
    resources: {requests: {cpu: "1"}, limits: {memory: 2Gi}}
  ttlSecondsAfterFinished: 604800
`,
	"baseline": `
spec:
  target: {fileSystem: {name: scratch}}
  tool: mdtest
  mdtest: {itemsPerProcess: 4}
  clients: {nodeSelector: {client: ""}}
  baseline: {run: before}
`,
	"ior": `
spec:
  target: {fileSystem: {name: scratch}}
  tool: ior
  ior: {interface: POSIX, blockSize: 1Mi, transferSize: 256Ki, segments: 1, filePerProcess: true, collective: true, reorderTasks: true,
    fsync: true, directIO: true, randomOffset: true, operations: [Write, Read], iterations: 3, args: [-v]}
  clients: {nodeSelector: {client: ""}}
`,
	"fio": `
spec:
  target: {fileSystem: {name: scratch}}
  tool: fio
  fio: {mode: randrw, readPercent: 70, blockSize: 4Ki, fileSize: 1Gi, engine: libaio, queueDepth: 16, directIO: true, fsyncOnClose: true,
    runtimeSeconds: 60, rampSeconds: 5, args: [--thread]}
  clients: {nodeSelector: {client: ""}}
`,
	"postmark": `
spec:
  target: {fileSystem: {name: scratch}}
  tool: postmark
  postmark: {files: 500, transactions: 500, subdirectories: 3, sizeLow: "500", sizeHigh: "9770", readSize: "512", writeSize: "512",
    biasRead: 5, biasCreate: 5, buffered: true, seed: 42}
  clients: {nodeSelector: {client: ""}}
`,
	"vdbench": `
spec:
  target: {fileSystem: {name: scratch}}
  tool: vdbench
  vdbench: {operations: [Create, Read], files: 100, depth: 1, width: 1, fileSize: 4Mi, transferSize: 1Mi, threadsPerClient: 16,
    syncWrites: true, directIO: true, elapsedSeconds: 60, args: [-v]}
  clients: {nodeSelector: {client: ""}}
`,
	"netmist": `
spec:
  target: {fileSystem: {name: scratch}}
  tool: netmist
  netmist: {blockKiB: 128, directoryCount: 8, workload: 1, runSeconds: 300, warmUpSeconds: 300, args: [-v]}
  clients: {nodeSelector: {client: ""}}
`,
	"mdsSurvey": `
spec:
  target: {fileSystem: {name: scratch}}
  tool: mdsSurvey
  mdsSurvey: {threadsLow: 1, threadsHigh: 64, fileCount: 200000, dirCount: 4, stripeCount: 0, tests: [create, lookup]}
  clients: {nodeSelector: {client: ""}}
`,
	"obdfilterSurvey": `
spec:
  target: {fileSystem: {name: scratch}}
  tool: obdfilterSurvey
  obdfilterSurvey: {threadsLow: 1, threadsHigh: 16, objectsLow: 1, objectsHigh: 2, sizeMiB: 1024, recordKiB: 1024, tests: [write, read]}
  clients: {nodeSelector: {client: ""}}
`,
	"storagebench": `
spec:
  target: {fileSystem: {name: scratch}}
  tool: storagebench
  storagebench: {operations: [Write, Read], blockSize: 128Ki, fileSize: 1Gi, threads: 4}
  clients: {nodeSelector: {client: ""}}
`,
	"custom": `
spec:
  target: {fileSystem: {name: scratch}}
  tool: custom
  custom:
    command: [dbench, "4"]
    launch: Single
    parameters: [{name: loops, value: "4"}]
    metrics:
    - {name: Throughput, unit: MB/sec, regex: "Throughput ([0-9.]+)", better: Higher, combine: Only}
    - {name: bandwidth, unit: kB/s, jsonPath: "{.bw}"}
    versionCommand: [dbench, --version]
    spaceBytes: 1Gi
  clients: {nodeSelector: {client: ""}}
`,
}

// fullSuite has a value for every field of a BenchmarkSuite.
const fullSuite = `
spec:
  fileSystem: {type: BeeGFS}
  variants:
  - {name: one, fileSystem: {version: "7"}, run: {processes: 4}, scale: 1}
  runs:
  - {name: creates, spec: {tool: mdtest}}
  afterVariant: Destroy
  confirmDestroy: 11-11
  onFailure: Stop
  readyTimeout: 30m
  baseline: {published: beegfs-2015-multi-mds}
  results:
    persistentVolumeClaim: {name: results, path: a/b}
    objectStore: {endpoint: "https://s3.example.org", bucket: results, prefix: a/b, region: eu, secretName: s3}
  ttlSecondsAfterFinished: 604800
`

// benchmarkBounds returns the rows for all bounds of a BenchmarkRun that are not written by hand.
func benchmarkBounds() refusals {
	rows := refusals{}
	for name, full := range fullRuns {
		below := map[string][]string{
			"mdsSurvey": {"spec.mdsSurvey"}, "obdfilterSurvey": {"spec.obdfilterSurvey"}, "baseline": {"spec.mdtest.itemsPerProcess", "spec.baseline"},
			"run": {"spec.mdtest", "spec.image", "spec.clients.count", "spec.clients.spread", "spec.clients.maxProcessesPerNode", "spec.sweep", "spec.sweepMode",
				"spec.derive", "spec.order", "spec.seed", "spec.warmUp", "spec.caches", "spec.pause", "spec.until", "spec.along", "spec.baseline", "spec.expect",
				"spec.limits.retries", "spec.limits.invalidRetries", "spec.results", "spec.queueName", "spec.priorityClassName", "spec.pods"},
		}[name]
		if below == nil {
			below = []string{"spec." + name}
		}
		for sentence, row := range everyBoundRefusals("benchmarkruns", full, below...) {
			rows["by its bound: "+sentence] = row
		}
	}
	return rows
}
