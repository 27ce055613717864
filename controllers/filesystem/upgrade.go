package filesystem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/disruption"
)

// upgrading is the progress of a filesystem's upgrade.
type upgrading struct {
	// reason and message are those of the condition Upgrading.
	reason, message string
	// refused is true if a person has to change something first, which the message names.
	refused bool
	// ended is true in the pass that records the end of the upgrade. Clients are remounted by a later pass, after that record was written.
	ended bool
}

// problems returns the problem of an upgrade: the spec is not carried out yet.
func (u *upgrading) problems() []backend.Problem {
	if u == nil || u.refused || u.ended {
		return nil
	}
	return []backend.Problem{{Reason: v1alpha1.ReasonUpgrading, Message: u.message}}
}

// recordVersion records the version of the spec as the version that the filesystem runs, while nothing was started that could have another
// version. It is written with the rest of the record, before anything is created.
func (p *pass) recordVersion(context.Context) error {
	serves := slices.ContainsFunc(p.in.Pods, func(pod backend.Pod) bool { return slices.Contains(p.backend.Order(), pod.Component) })
	if p.fs.Status.Version == "" || isNew(p.fs) && !serves {
		p.fs.Status.Version, p.fs.Status.Upgrade = p.fs.Spec.Version, nil
	}
	return nil
}

// upgrade decides whether the filesystem goes to the version of the spec now, or its upgrade to the next component. The decision is written
// with the status of this pass, and carried out by the next pass, so no daemon gets a version that is not recorded.
func (p *pass) upgrade(ctx context.Context) error {
	fs, u := p.fs, p.fs.Status.Upgrade
	if u == nil && fs.Status.Version == fs.Spec.Version {
		fs.Status.UpgradeAsked = nil
		return nil
	}
	if u == nil {
		var err error
		if p.upgrading, err = p.mayUpgrade(ctx); err != nil {
			return err
		}
		if p.upgrading == nil {
			return p.beginUpgrade(ctx)
		}
	} else {
		p.upgrading = p.goOn(u)
	}
	if p.upgrading.refused {
		fs.Status.UpgradeAsked = nil
		p.problems = append(p.problems, backend.Problem{Reason: p.upgrading.reason, Message: p.upgrading.message})
	}
	return nil
}

// beginUpgrade records that the filesystem goes to the version of the spec, beginning with its first component, unless a benchmark has the
// lease.
func (p *pass) beginUpgrade(ctx context.Context) error {
	fs := p.fs
	what := fmt.Sprintf("the upgrade from %s to %s", fs.Status.Version, fs.Spec.Version)
	if may, err := p.hold.may(ctx, what+" is to begin"); err != nil {
		return err
	} else if !may {
		p.upgrading = &upgrading{reason: v1alpha1.ReasonUpgradeWaits, message: what + " waits for the end of " + p.hold.by}
		return nil
	}
	first := p.backend.Order()[0]
	fs.Status.Upgrade, fs.Status.UpgradeAsked = &v1alpha1.UpgradeStatus{Version: fs.Spec.Version, Components: []string{first}}, nil
	p.upgrading = &upgrading{reason: v1alpha1.ReasonUpgrading, message: what + " begins: " + first}
	note := v1alpha1.Cut(p.upgrading.message, conditions.MaxNote)
	p.Recorder.Eventf(fs, nil, corev1.EventTypeNormal, v1alpha1.ReasonUpgrading, "Upgrade", "%s", note)
	return nil
}

// mayUpgrade returns why an upgrade does not begin, nil if it may. For an upgrade that is not refused, it records since when it is
// requested.
func (p *pass) mayUpgrade(ctx context.Context) (*upgrading, error) {
	from, to := p.fs.Status.Version, p.fs.Spec.Version
	refused := func(why string) (*upgrading, error) {
		return &upgrading{reason: v1alpha1.ReasonUpgradeRefused, refused: true, message: fmt.Sprintf(
			"spec.version %s is refused, and the filesystem goes on with %s: %s", to, from, why)}, nil
	}
	waits := func(reason, why string) (*upgrading, error) {
		return &upgrading{reason: reason, message: fmt.Sprintf("the upgrade from %s to %s begins when %s", from, to, why)}, nil
	}
	upgrader, can := p.backend.(backend.Upgrader)
	if !can {
		return refused(fmt.Sprintf("a %s can't be upgraded in place", p.fs.Spec.Type))
	}
	if why := upgrader.UpgradePath(from, to); why != "" {
		return refused(why)
	}
	members, why := p.canBeMade(to)
	if why != "" {
		return refused(why)
	}
	if asked := p.fs.Status.UpgradeAsked; asked == nil || asked.Version != to {
		p.fs.Status.UpgradeAsked = &v1alpha1.UpgradeAsked{Version: to, Since: metav1.NewTime(p.Clock.Now().Truncate(time.Second))}
	}
	if why := upgrader.UpgradeSkew(p.in, to); why != "" {
		return waits(v1alpha1.ReasonVersionSkew, "none is newer than its master: "+why)
	}
	if why := noBackup(p.fs, p.in.Nodes); why != "" && p.fs.Spec.Updates.UpgradeWithoutBackup != to {
		return waits(v1alpha1.ReasonBackupMissing, fmt.Sprintf("a backup was just made and verified, and %s. To do without, set spec.updates.upgradeWithoutBackup to %q: "+
			"an upgrade that fails may then lose the filesystem", why, to))
	}
	if why := metadatajobs.WaitsForCopy(p.fs, ""); why != "" {
		return waits(v1alpha1.ReasonUpgradeWaits, why)
	}
	if len(members) == 0 {
		return waits(v1alpha1.ReasonUpgradeWaits, "all that the spec asks for is made")
	}
	// Images are pulled before the window opens.
	if missing, err := p.unpulled(ctx, members, p.backend.Order(), p.in.Pods); err != nil {
		return nil, err
	} else if missing != "" {
		return waits(v1alpha1.ReasonImagesMissing, "the nodes of all servers have their new images; "+missing)
	}
	if why := p.waitsForTurn(p.backend.Order()[0]); why != "" {
		return waits(v1alpha1.ReasonUpgradeWaits, why)
	}
	return nil, nil //nolint:nilnil // nothing stands in the way
}

// noBackup returns why a place has no verified backup of irreplaceable metadata from after the upgrade was requested; empty if each place
// has one.
func noBackup(fs *v1alpha1.FileSystem, nodes []backend.Node) string {
	made := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionBackedUp)
	if made == nil || made.Reason == v1alpha1.ReasonBackupsNotConfigured {
		return "no backups are configured: set spec.backups where the filesystem has that, or copy the metadata by other means first"
	}
	if made.Status != metav1.ConditionTrue {
		return "there is no verified backup of now: " + made.Message
	}
	since := fs.Status.UpgradeAsked.Since
	if without := metadatajobs.NotBackedUpSince(fs, nodes, since.Time); len(without) > 0 {
		return fmt.Sprintf("there is none of %s or later yet at %s", since.UTC().Format("2006-01-02 15:04:05 MST"), backend.List(without))
	}
	return ""
}

// canBeMade returns the members of the filesystem in another version, and why the daemons can't run that version; empty if they can. It
// checks all of them, and the first component before the others.
func (p *pass) canBeMade(version string) (members []client.Object, why string) {
	order := p.backend.Order()
	for _, components := range [][]string{order, order[:1]} {
		fs := p.wantedOrOwn().DeepCopy()
		fs.Status.Upgrade = &v1alpha1.UpgradeStatus{Version: version, Components: components}
		if len(components) == len(order) {
			fs.Status.Version, fs.Status.Upgrade = version, nil
		}
		in := p.in
		in.FileSystem = fs
		made, err := p.backend.Members(in)
		if invalid, is := errors.AsType[*backend.InvalidSpecError](err); is {
			return nil, invalid.Message
		}
		if len(components) == len(order) {
			members = made
		}
	}
	return members, ""
}

func (p *pass) wantedOrOwn() *v1alpha1.FileSystem {
	if p.wanted != nil {
		return p.wanted
	}
	return p.fs
}

// waitsForTurn returns what a component waits for before its daemons may get another version, in words that follow "when "; empty if for
// nothing. It comes after all pods that must restart. If programs wait for each of its daemons, it begins in a window.
func (p *pass) waitsForTurn(component string) string {
	costs := ""
	for i := range p.in.Pods {
		if pod := &p.in.Pods[i]; pod.Component == component {
			if costs = p.observation.Sole[pod.Name.Name]; costs == "" {
				break
			}
		}
	}
	return p.waitsBehind(p.in, component, costs)
}

// waitsBehind returns what a component waits for after all pods that must restart. Costs is why programs wait meanwhile.
func (p *pass) waitsBehind(in backend.Input, component, costs string) string {
	closed, _ := disruption.Closed(p.fs.Spec.Updates.Windows, p.Clock.Now()) // chooseRestarts reports a window that can't be parsed
	order := p.backend.Order()
	all := pendingPods(order, in, p.observation, circumstances{})
	queue := make([]disruption.Disruption, len(all), len(all)+1)
	for i := range all {
		queue[i] = all[i].Disruption
	}
	next := disruption.Disruption{Place: disruption.Place{Component: component}, Priority: len(order), Why: "the upgrade", Costs: costs}
	waits := disruption.Decide(append(queue, next), worldOf(order, in, backend.Maintained(p.fs), p.observation, closed)).Waits[len(queue)]
	if waits != "" && len(p.observation.Problems) > 0 {
		waits += "; now " + p.observation.Problems[0].Message
	}
	return waits
}

// goOn takes an upgrade to its next component, or ends it, and describes its progress. A component whose daemons have the new version keeps
// it: none goes back.
func (p *pass) goOn(u *v1alpha1.UpgradeStatus) *upgrading {
	fs, order := p.fs, p.backend.Order()
	from := fs.Status.Version
	if fs.Spec.Version != u.Version {
		return &upgrading{reason: v1alpha1.ReasonUpgradeRefused, refused: true, message: fmt.Sprintf(
			"spec.version %s is refused while the upgrade from %s to %s is under way, and these have begun to run %s: %s; they don't go back. "+
				"Set spec.version to %s to go on", fs.Spec.Version, from, u.Version, u.Version, backend.List(u.Components), u.Version)}
	}
	next := slices.IndexFunc(order, func(component string) bool { return !slices.Contains(u.Components, component) })
	done, left := progress(u, p.in, p.observation)
	if next >= 0 {
		done += "; still " + from + ": " + strings.Join(order[next:], ", then ")
	}
	how := &upgrading{reason: v1alpha1.ReasonUpgrading}
	under := func(what string) *upgrading {
		how.message = fmt.Sprintf("the upgrade from %s to %s is under way: %s; %s", from, u.Version, done, what)
		return how
	}
	if left != "" {
		return under(left)
	}
	what, component := "it ends", order[len(order)-1]
	if next >= 0 {
		what, component = order[next]+" follows", order[next]
	}
	if waits := p.waitsForTurn(component); waits != "" {
		return under(what + " when " + waits)
	}
	if next < 0 {
		fs.Status.Version, fs.Status.Upgrade = u.Version, nil
		p.Recorder.Eventf(fs, nil, corev1.EventTypeNormal, v1alpha1.ReasonUpgrading, "Upgrade", "The upgrade from %s to %s is over: all servers run it", from, u.Version)
		return &upgrading{ended: true}
	}
	fs.Status.Upgrade = &v1alpha1.UpgradeStatus{Version: u.Version, Components: append(slices.Clone(u.Components), component)}
	return under(component + " follows")
}

// progress returns how many daemons of each component run the new version, and which component does not run it completely, empty if all do.
// A daemon runs it if its pod was made with it and a later answer of the filesystem names no other version.
func progress(u *v1alpha1.UpgradeStatus, in backend.Input, observation backend.Observation) (done, left string) {
	reported := map[string]string{}
	for i := range observation.Servers {
		reported[observation.Servers[i].Name] = observation.Servers[i].Version
	}
	var parts []string
	for _, component := range u.Components {
		all, run := 0, 0
		for i := range in.Pods {
			p := &in.Pods[i]
			if p.Component != component {
				continue
			}
			all++
			switch reported := reported[p.Server()]; {
			case p.Version != u.Version || p.Outdated:
				left = cmp.Or(left, fmt.Sprintf("%s on node %s is to be restarted with it", component, p.Node))
			case !p.Ready || !in.AskedSince(*p):
				left = cmp.Or(left, fmt.Sprintf("%s on node %s starts with it", component, p.Node))
			case reported != "" && reported != u.Version:
				left = cmp.Or(left, fmt.Sprintf("%s on node %s got its image and reports %s; check what that image holds", component, p.Node, reported))
			default:
				run++
			}
		}
		parts = append(parts, fmt.Sprintf("%s %d/%d", component, run, all))
	}
	return backend.List(parts), left
}

// proveVersions returns an error if daemons are about to get other software and the recorded version has changed since this pass read it.
// So an operator with an old read does not take a filesystem back to a former version.
func (p *pass) proveVersions(ctx context.Context, sets []daemonSet) error {
	if !slices.ContainsFunc(sets, func(set daemonSet) bool {
		const version = backend.VersionAnnotation
		return set.live != nil && set.live.Spec.Template.Annotations[version] != "" &&
			set.live.Spec.Template.Annotations[version] != set.wanted.Spec.Template.Annotations[version]
	}) {
		return nil
	}
	now := &v1alpha1.FileSystem{}
	if err := p.Reader.Get(ctx, client.ObjectKeyFromObject(p.fs), now); err != nil {
		return fmt.Errorf("read the version that is on record: %w", err)
	}
	if now.UID != p.fs.UID || now.Status.Version != p.fs.Status.Version ||
		!equality.Semantic.DeepEqual(now.Status.Upgrade, p.fs.Status.Upgrade) {
		return errors.New("the version that is on record has changed since it was read; the next pass looks again")
	}
	return nil
}

// describeUpgrade sets the condition Upgrading. Once the servers run the version of the spec, it names the clients that do not.
func (p *pass) describeUpgrade() {
	fs, u, status := p.fs, p.upgrading, metav1.ConditionTrue
	if u != nil && fs.Status.Upgrade == nil && fs.Status.Version != fs.Spec.Version {
		status = metav1.ConditionFalse
	}
	if u == nil || u.ended {
		u = clientsOlder(fs, p.backend.Order(), p.in.Pods, p.clientsWait)
	}
	if u == nil {
		meta.RemoveStatusCondition(&fs.Status.Conditions, v1alpha1.ConditionUpgrading)
		return
	}
	conditions.Add(&fs.Status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionUpgrading, status, u.reason, u.message)
}
