package driver

import (
	"cmp"
	"math"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube/pod"
	"github.com/governor-dev/governor/lifecycle"
)

// members are all members in etcd's list and all with objects in Kubernetes, without the times of
// their health.
func members(want *etcdv1.EtcdCluster, p parts, r memberList, responses map[string]answer) []etcd.Member {
	byName := map[string]etcd.Member{}
	for name := range p.sets {
		byName[name] = fromKubernetes(want, p, name)
	}
	for name, claim := range p.claims {
		if plausible(want, p, r, name) && (alive(claim) || keepsData(p, name)) { // Kubernetes deletes the remains of a deleted member
			byName[name] = fromKubernetes(want, p, name)
		}
	}
	for name, pod := range p.pods {
		if etcd.Volatile(want) && (orphaned(pod) || p.stuckSets[name] != nil) { // it has the data, even without its StatefulSet
			byName[name] = fromKubernetes(want, p, name)
		}
	}
	for _, e := range r.entries {
		m := fromKubernetes(want, p, e.name)
		if m.Unmanaged = e.unmanaged; m.Unmanaged {
			m = etcd.Member{Name: e.name, Unmanaged: true}
		}
		addListEntry(&m, e.Member)
		byName[e.name] = m
	}
	all := make([]etcd.Member, 0, len(byName))
	for _, m := range byName {
		all = append(all, withAnswer(m, responses[m.Name], r))
	}
	slices.SortFunc(all, order)
	return all
}

// plausible reports whether a claim of that name may be a member's. Anyone who may create claims can
// invent a number, and the numbers after it would be used up.
func plausible(want *etcdv1.EtcdCluster, p parts, r memberList, name string) bool {
	if p.sets[name] != nil || r.ours()[name] || etcd.MayHaveAdded(want, name) {
		return true
	}
	return want.Status.Bootstrap == nil && etcd.IsMemberName(want, name) && etcd.Number(name) < math.MaxInt32
}

// keepsData reports that the pod outlasts its StatefulSet, or that the deletion of the latter
// does not finish. A claim that is being deleted then lasts as long as the pod.
func keepsData(p parts, name string) bool {
	pod := p.pods[name]
	return pod != nil && alive(pod) && (orphaned(pod) || p.stuckSets[name] != nil)
}

// order sorts by number, unmanaged members last.
func order(a, b etcd.Member) int {
	switch {
	case a.Unmanaged && !b.Unmanaged:
		return 1
	case b.Unmanaged && !a.Unmanaged:
		return -1
	}
	return cmp.Or(cmp.Compare(etcd.Number(a.Name), etcd.Number(b.Name)), cmp.Compare(a.Name, b.Name))
}

// fromKubernetes derives the member from its objects in Kubernetes.
func fromKubernetes(want *etcdv1.EtcdCluster, p parts, name string) etcd.Member {
	m := etcd.Member{Name: name}
	if config := p.bootstrapConfigs[name]; config != nil {
		m.Bootstrap = etcd.BootstrapModeOf(config)
	}
	if set := p.sets[name]; set != nil {
		m.Set.Exists = true
		m.Set.Revision, m.Set.Version = template(set.Annotations)
		m.Set.Exposure = etcd.Exposure(set.Labels[etcd.LabelExposed])
	}
	lastWords := ""
	if found := p.pods[name]; found != nil {
		m.Pod, lastWords = podOf(found)
		m.Pod.Stale = !m.Pod.Leaving && (stale(p.sets[name], found) || foreign(want, found))
		m.Pod.Stripped = lacksTemplateLabels(p.sets[name], found)
		if etcd.HidesData(found.Spec) {
			lastWords = "" // they are about another volume
		}
	}
	m.Volume = volume(want, m, p.claims[name], lastWords)
	m.Volume.Restored = !etcd.Volatile(want) && restored(p.claims[name], p.sets[name])
	if etcd.Volatile(want) && keepsData(p, name) {
		m.Volume.Exists, m.Volume.Terminating = true, p.stuckSets[name] != nil
	}
	return m
}

// stale reports that the pod was created from another template than its StatefulSet has now, or was
// given an image that cannot run since.
func stale(set *appsv1.StatefulSet, found *corev1.Pod) bool {
	madeFrom := found.Labels[appsv1.ControllerRevisionHashLabelKey]
	if set == nil || set.Status.ObservedGeneration != set.Generation || madeFrom == "" || set.Status.UpdateRevision == "" {
		return false
	}
	return madeFrom != set.Status.UpdateRevision || pod.ImageEdited(found, set.Spec.Template.Spec, etcd.Name)
}

func template(annotations map[string]string) (revision, version string) {
	return annotations[etcd.AnnotationRevision], annotations[etcd.AnnotationVersion]
}

func podOf(found *corev1.Pod) (p etcd.Pod, lastWords string) {
	s := pod.Of(found, etcd.Name)
	p = etcd.Pod{
		Exists: true, Ready: s.Ready, Leaving: s.Terminating, Ended: s.Finished,
		Node: found.Spec.NodeName, Trouble: s.Problem, Detail: s.Detail, Since: s.Since,
	}
	if s.Terminating {
		p.HeldBy = strings.Join(found.Finalizers, ", ")
	}
	if s.Container != "" {
		p.OtherContainer = s.Detail
	}
	if s.Container != "" && s.Running {
		p.Trouble, p.Detail = lifecycle.PodProblemNone, ""
	}
	p.Revision, p.Version = template(found.Annotations)
	p.Exposure = etcd.Exposure(found.Labels[etcd.LabelExposed])
	return p, s.TerminationMessage
}

// volume is lost if the termination message of a member that had data shows it.
func volume(want *etcdv1.EtcdCluster, m etcd.Member, claim *corev1.PersistentVolumeClaim, lastWords string) etcd.Volume {
	var v etcd.Volume
	switch {
	case etcd.Volatile(want):
		v.Exists = m.Set.Exists
	case claim != nil:
		_, version := template(claim.Annotations)
		v = etcd.Volume{
			Exists: true, Terminating: !alive(claim), Unbound: claim.Status.Phase == corev1.ClaimLost, Owned: owns(want, claim), Version: version, Size: claim.Spec.Resources.Requests.Storage().Value(), Capacity: claim.Status.Capacity.Storage().Value(),
			Stripped: lacksLabels(etcd.ClaimLabels(want, m.Name), claim), Removing: removing(claim),
		}
	}
	if m.Bootstrap == etcd.BootstrapDisabled {
		v.Detail = etcd.Diagnose(lastWords)
		v.Lost = v.Detail != ""
	}
	return v
}

func addListEntry(m *etcd.Member, e *pb.Member) {
	m.ID, m.Role, m.Joined = e.ID, etcd.Voter, len(e.ClientURLs) > 0
	if e.IsLearner {
		m.Role = etcd.Learner
	}
	if len(e.PeerURLs) > 0 {
		m.PeerURL = e.PeerURLs[0]
	}
}

// withAnswer adds the member's own answer. A member that answers with another identity, or for
// another cluster, is not healthy.
func withAnswer(m etcd.Member, a answer, r memberList) etcd.Member {
	m.Health, m.Refused = a.health, a.refused
	if s := a.status; s != nil {
		id := s.Header.GetMemberId()
		if r.cluster != 0 && s.Header.GetClusterId() != r.cluster || r.known() && m.ID != id {
			m.Health = etcd.Unhealthy
		}
		m.Foreign = r.foreign[m.Name]
		m.Index, m.Version, m.DBSize, m.Quota = s.RaftIndex, s.Version, s.DbSize, s.DbSizeQuota
		m.Leads = r.known() && m.Health == etcd.Healthy && s.Leader == id && m.Role == etcd.Voter
	}
	for _, alarm := range r.alarms {
		if alarm.MemberID == m.ID && m.ID != 0 {
			m.Alarms = append(m.Alarms, alarm.Alarm.String())
		}
	}
	slices.Sort(m.Alarms)
	return m
}
