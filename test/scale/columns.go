//go:build scale

package main

// column is one measured quantity.
type column struct {
	// name is the name in the document, head that in the table.
	name, head string
	// goal is its maximum; nil for a quantity without a goal.
	goal *goal
	// grows is true for a quantity that may grow with the filesystem, but not faster than it: its exponent is judged.
	grows bool
}

// quantity is a column that is only shown.
func quantity(name, head string) column { return column{name: name, head: head} }

// atMost sets the goal for filesystems of any size.
func (c column) atMost(most float64) column {
	c.goal = &goal{most: most, always: true}
	return c
}

// atThousand sets the goal for a filesystem of a thousand nodes.
func (c column) atThousand(most float64) column {
	c.goal = &goal{most: most}
	return c
}

// from restricts the goal to so many nodes or more.
func (c column) from(nodes int) column {
	c.goal.least = nodes
	return c
}

// inProportion makes the exponent count.
func (c column) inProportion() column {
	c.grows = true
	return c
}

// The columns, with the goals of docs/adr/0050-scale-is-measured.md.
var (
	readySeconds     = quantity("readySeconds", "seconds").inProportion()
	writesPerTarget  = quantity("writesPerTarget", "writes/target").atMost(3)
	eventsPerTarget  = quantity("eventsPerTarget", "events/target")
	writesPerNode    = quantity("writesPerNode", "writes/node").atMost(4).from(perNodeFrom)
	managerSeconds   = quantity("managerCPUSeconds", "manager CPU s").atThousand(120).inProportion()
	readyPeak        = quantity("readyManagerPeakMiB", "manager peak MiB").inProportion()
	apiServerSeconds = quantity("apiServerCPUSeconds", "API server CPU s")
	etcdSeconds      = quantity("etcdCPUSeconds", "etcd CPU s")
	readyP99         = quantity("passP99Milliseconds", "pass p99 ms")
	quietPerTarget   = quantity("writesPerTargetUntilQuiet", "until quiet: writes/target")
	quietPerNode     = quantity("writesPerNodeUntilQuiet", "until quiet: writes/node")
	stoppedSeconds   = quantity("stoppedAfterSeconds", "")

	idle = steady{
		writes:       quantity("idleWritesPerSecond", "writes/s").atMost(0),
		manager:      quantity("idleManagerPercent", "manager % of a core").atThousand(5).inProportion(),
		resident:     quantity("idleManagerMiB", "manager RSS MiB").atThousand(400).inProportion(),
		p50:          quantity("idlePassP50Milliseconds", "pass p50 ms"),
		p99:          quantity("idlePassP99Milliseconds", "pass p99 ms").atThousand(250),
		answer:       quantity("idleAnswerP99Milliseconds", "and waits p99 ms"),
		controlPlane: quantity("idleControlPlanePercent", "API server + etcd %"),
	}
	used = steady{
		writes:       quantity("usedWritesPerSecond", "writes/s").atThousand(5),
		manager:      quantity("usedManagerPercent", "manager % of a core").atThousand(5).inProportion(),
		resident:     quantity("usedManagerMiB", "manager RSS MiB").atThousand(400).inProportion(),
		p50:          quantity("usedPassP50Milliseconds", "pass p50 ms"),
		p99:          quantity("usedPassP99Milliseconds", "pass p99 ms").atThousand(250),
		answer:       quantity("usedAnswerP99Milliseconds", "and waits p99 ms"),
		controlPlane: quantity("usedControlPlanePercent", "API server + etcd %"),
	}

	runsSeconds   = quantity("runsSeconds", "seconds")
	runsEnded     = quantity("runsEnded", "ended")
	runsWrites    = quantity("writesPerRun", "writes/run")
	runsManager   = quantity("runsManagerCPUSeconds", "manager CPU s")
	runsAPIServer = quantity("runsAPIServerCPUSeconds", "API server CPU s")
	runsP50       = quantity("runPassP50Milliseconds", "pass p50 ms")
	runsP99       = quantity("runPassP99Milliseconds", "pass p99 ms")

	restarted      = quantity("restartedServers", "servers")
	restartServers = quantity("restartServersAway", "servers away at a time").atMost(restartTogether)
	restartDomains = quantity("restartDomainsAway", "failure domains away at a time").atMost(1)
	restartWrites  = quantity("writesPerRestart", "writes/server")

	lossWrites  = quantity("lostDiskWrites", "writes").atMost(6)
	lossEvents  = quantity("lostDiskEvents", "events")
	lossSeconds = quantity("lostDiskSeconds", "seconds until the status shows it").atMost(15)

	endPeak = quantity("managerPeakMiB", "manager peak MiB").inProportion()

	anewLeads   = quantity("anewSecondsUntilItLeads", "seconds until it leads")
	anewLooked  = quantity("anewSecondsUntilItHasLooked", "until it has looked")
	anewIdle    = quantity("anewSecondsUntilIdle", "until idle")
	anewManager = quantity("anewManagerCPUSeconds", "manager CPU s until idle").inProportion()
	anewPeak    = quantity("anewManagerPeakMiB", "manager peak MiB").inProportion()
	anewWrites  = quantity("anewWrites", "writes").atMost(0)
)

// tables lists the printed tables, in their order.
var tables = []struct {
	title   string
	columns []column
}{
	{"From apply to Ready", []column{
		readySeconds, writesPerTarget, eventsPerTarget, writesPerNode, managerSeconds, readyPeak, readyP99, apiServerSeconds, etcdSeconds,
		quietPerTarget, quietPerNode,
	}},
	{"An idle minute", idle.columns()},
	{"Benchmarks, ten at a time", []column{runsSeconds, runsEnded, runsWrites, runsManager, runsP50, runsP99, runsAPIServer}},
	{"Storage servers are restarted", []column{restarted, restartServers, restartDomains, restartWrites}},
	{"A disk dies", []column{lossWrites, lossEvents, lossSeconds}},
	{"Programs write", append(used.columns(), endPeak)},
	{"The manager is started anew", []column{anewLeads, anewLooked, anewIdle, anewManager, anewPeak, anewWrites}},
}
