package driver

import (
	"cmp"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube/pod"
)

// members are all that etcd lists and all that Kubernetes has parts of.
func (d *Driver) members(want *etcdv1.EtcdCluster, p parts, r memberList, said map[string]answer) []etcd.Member {
	byName := map[string]etcd.Member{}
	for name := range p.sets {
		byName[name] = resident(want, p, name)
	}
	for name, claim := range p.claims {
		if alive(claim) || keepsData(p, name) { // the rest of a member that is gone goes by itself
			byName[name] = resident(want, p, name)
		}
	}
	for name, pod := range p.pods {
		if etcd.Volatile(want) && (orphaned(pod) || p.held[name] != nil) { // it has the data, also without its StatefulSet
			byName[name] = resident(want, p, name)
		}
	}
	for _, e := range r.entries {
		m := resident(want, p, e.name)
		if m.Unmanaged = e.stranger; m.Unmanaged {
			m = etcd.Member{Name: e.name, Unmanaged: true}
		}
		enlist(&m, e.Member)
		byName[e.name] = m
	}
	all := make([]etcd.Member, 0, len(byName))
	for _, m := range byName {
		all = append(all, d.examined(want, m, said[m.Name], r))
	}
	slices.SortFunc(all, order)
	d.healthTimes.forget(want.UID, byName)
	return all
}

// keepsData says that the pod lasts without its StatefulSet, or beside one that does not go,
// and with it a claim that is being deleted.
func keepsData(p parts, name string) bool {
	pod := p.pods[name]
	return pod != nil && alive(pod) && (orphaned(pod) || p.held[name] != nil)
}

// order is by number, strangers last.
func order(a, b etcd.Member) int {
	switch {
	case a.Unmanaged && !b.Unmanaged:
		return 1
	case b.Unmanaged && !a.Unmanaged:
		return -1
	}
	return cmp.Or(cmp.Compare(etcd.Number(a.Name), etcd.Number(b.Name)), cmp.Compare(a.Name, b.Name))
}

// resident is what Kubernetes has of the member.
func resident(want *etcdv1.EtcdCluster, p parts, name string) etcd.Member {
	m := etcd.Member{Name: name}
	if door := p.doors[name]; door != nil {
		m.Bootstrap = etcd.BootstrapModeOf(door)
	}
	if set := p.sets[name]; set != nil {
		m.Set.Exists = true
		m.Set.Revision, m.Set.Version = template(set.Annotations)
		m.Set.Exposure = etcd.Exposure(set.Labels[etcd.LabelExposed])
	}
	lastWords := ""
	if found := p.pods[name]; found != nil {
		m.Pod, lastWords = podOf(found)
		m.Pod.Stale, m.Pod.Stripped = stale(p.sets[name], found) || foreign(want, found), lacksTemplateLabels(p.sets[name], found)
	}
	m.Volume = volume(want, m, p.claims[name], lastWords)
	if etcd.Volatile(want) && keepsData(p, name) {
		m.Volume.Exists, m.Volume.Terminating = true, p.held[name] != nil
	}
	return m
}

// stale says that the pod was made from another template than its StatefulSet has now.
func stale(set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	made := pod.Labels[appsv1.ControllerRevisionHashLabelKey]
	return set != nil && set.Status.ObservedGeneration == set.Generation && made != "" &&
		set.Status.UpdateRevision != "" && made != set.Status.UpdateRevision
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
	p.Revision, p.Version = template(found.Annotations)
	p.Exposure = etcd.Exposure(found.Labels[etcd.LabelExposed])
	return p, s.TerminationMessage
}

// volume is lost if a member that had data says so as it ends.
func volume(want *etcdv1.EtcdCluster, m etcd.Member, claim *corev1.PersistentVolumeClaim, lastWords string) etcd.Volume {
	var v etcd.Volume
	switch {
	case etcd.Volatile(want):
		v.Exists = m.Set.Exists
	case claim != nil:
		_, version := template(claim.Annotations)
		v = etcd.Volume{
			Exists: true, Terminating: !alive(claim), Owned: owns(want, claim), Version: version, Size: claim.Spec.Resources.Requests.Storage().Value(),
			Stripped: lacksLabels(etcd.ClaimLabels(want, m.Name), claim),
		}
	}
	if m.Bootstrap == etcd.BootstrapDisabled {
		v.Detail = etcd.Diagnose(lastWords)
		v.Lost = v.Detail != ""
	}
	return v
}

func enlist(m *etcd.Member, e *pb.Member) {
	m.ID, m.Role, m.Joined = e.ID, etcd.Voter, len(e.ClientURLs) > 0
	if e.IsLearner {
		m.Role = etcd.Learner
	}
	if len(e.PeerURLs) > 0 {
		m.PeerURL = e.PeerURLs[0]
	}
}

// examined adds what the member itself says. One that answers as somebody else, or
// for another cluster, is not healthy.
func (d *Driver) examined(want *etcdv1.EtcdCluster, m etcd.Member, a answer, r memberList) etcd.Member {
	m.Health, m.Refused = a.health, a.refused
	if s := a.status; s != nil {
		id := s.Header.GetMemberId()
		if r.cluster != 0 && s.Header.GetClusterId() != r.cluster || r.known() && m.ID != id {
			m.Health = etcd.Unhealthy
		}
		m.Index, m.Version, m.DBSize, m.Quota = s.RaftIndex, s.Version, s.DbSize, s.DbSizeQuota
		m.Leads = r.known() && m.Health == etcd.Healthy && s.Leader == id && m.Role == etcd.Voter
	}
	for _, alarm := range r.alarms {
		if alarm.MemberID == m.ID && m.ID != 0 {
			m.Alarms = append(m.Alarms, alarm.Alarm.String())
		}
	}
	slices.Sort(m.Alarms)
	m.Since = d.healthTimes.since(want, m, d.now())
	return m
}
