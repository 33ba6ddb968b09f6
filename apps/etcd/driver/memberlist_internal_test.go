package driver

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

func plain(domain string) *etcdv1.EtcdCluster {
	want := &etcdv1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "my-etcd", Namespace: "ns", UID: "uid"}}
	want.Spec.TLS.Mode, want.Spec.ClusterDomain = etcdv1.TLSModeDisabled, domain
	return want
}

func answerOf(member, cluster, leader uint64, health etcd.Health) answer {
	return answer{health: health, status: &pb.StatusResponse{
		Header: &pb.ResponseHeader{MemberId: member, ClusterId: cluster}, Leader: leader,
	}}
}

// The leader is first, then the others in a stable order. Unhealthy members, learners and members
// of other clusters are excluded.
func TestQuorumMembers(t *testing.T) {
	learner := answerOf(6, 1, 3, etcd.Healthy)
	learner.status.IsLearner = true
	said := map[string]answer{
		"a": answerOf(4, 1, 3, etcd.Healthy), "b": answerOf(3, 1, 3, etcd.Healthy), "c": answerOf(2, 1, 3, etcd.Healthy),
		"ill": answerOf(1, 1, 3, etcd.Unhealthy), "silent": {}, "stranger": answerOf(5, 2, 5, etcd.Healthy), "learner": learner,
	}
	var got []uint64
	for _, a := range quorumMembers(1, said) {
		got = append(got, a.status.Header.MemberId)
	}
	if diff := cmp.Diff([]uint64{3, 2, 4}, got); diff != "" {
		t.Error(diff)
	}
	if voters := quorumMembers(0, said); len(voters) > 0 {
		t.Errorf("of an unknown cluster %d members speak", len(voters))
	}
}

// Once the cluster's ID is known, no other answers for it.
func TestClusterID(t *testing.T) {
	cases := map[string]struct {
		reason, remembered string
		said               map[string]answer
		want               uint64
	}{
		"First":    {"a member with a quorum determines the ID", "", map[string]answer{"a": answerOf(1, 7, 1, etcd.Healthy)}, 7},
		"NoQuorum": {"a member without one may belong to another cluster", "", map[string]answer{"a": answerOf(1, 7, 0, etcd.Unhealthy)}, 0},
		"Known":    {"one member is enough to know it again", "7", map[string]answer{"a": answerOf(1, 7, 0, etcd.Unhealthy)}, 7},
		"Another":  {"another cluster at our address is not ours", "7", map[string]answer{"a": answerOf(1, 8, 1, etcd.Healthy)}, 0},
		"Silence":  {"no member answers", "7", map[string]answer{"a": {}}, 0},
		"Divided":  {"ours among others", "7", map[string]answer{"a": answerOf(1, 9, 1, etcd.Healthy), "b": answerOf(2, 7, 2, etcd.Healthy)}, 7},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := plain("")
			want.Status.ClusterID = c.remembered
			if got := clusterID(want, c.said); got != c.want {
				t.Errorf("%s: got %x, want %x", c.reason, got, c.want)
			}
		})
	}
}

// sinceOf records one member and returns the time of its health.
func sinceOf(p *healthTimes, want *etcdv1.EtcdCluster, m etcd.Member, now time.Time) time.Time {
	members := []etcd.Member{m}
	p.record(want, members, true, now)
	return members[0].Since
}

// The time of a member's last change survives the operator in the status.
func TestHealthTimes(t *testing.T) {
	want, m := plain(""), etcd.Member{Name: "my-etcd-0", Health: etcd.Healthy}
	p := newHealthTimes()
	if got := sinceOf(p, want, m, noon.Add(300*time.Millisecond)); !got.Equal(noon) {
		t.Errorf("it begins at %s, want whole seconds, which the status can hold", got)
	}
	if got := sinceOf(p, want, m, noon.Add(time.Minute)); !got.Equal(noon) {
		t.Errorf("still healthy, since %s", got)
	}
	m.Health = etcd.Unknown
	if got := sinceOf(p, want, m, noon.Add(2*time.Minute)); !got.Equal(noon.Add(2 * time.Minute)) {
		t.Errorf("silent since %s", got)
	}
	want.Status.Members = []etcdv1.MemberStatus{{Name: "my-etcd-0", Health: "Unknown", Since: &metav1.Time{Time: noon.Add(2 * time.Minute)}}}
	if got := sinceOf(newHealthTimes(), want, m, noon.Add(4*time.Minute)); !got.Equal(noon.Add(2 * time.Minute)) {
		t.Errorf("a new operator says silent since %s", got)
	}
	m.Health = etcd.Healthy
	if got := sinceOf(newHealthTimes(), want, m, noon.Add(4*time.Minute)); !got.Equal(noon.Add(4 * time.Minute)) {
		t.Errorf("what the status says of silence is not about health: %s", got)
	}
}

// A recreated cluster of the same name starts afresh, and removed members are dropped.
func TestHealthTimesForget(t *testing.T) {
	p, want, m := newHealthTimes(), plain(""), etcd.Member{Name: "my-etcd-0", Health: etcd.Healthy}
	sinceOf(p, want, m, noon)
	other := plain("")
	other.UID = "another"
	if got := sinceOf(p, other, m, noon.Add(time.Hour)); !got.Equal(noon.Add(time.Hour)) {
		t.Errorf("another cluster's member is healthy since %s", got)
	}
	p.record(want, []etcd.Member{{Name: "my-etcd-1"}}, true, noon)
	if got := sinceOf(p, want, m, noon.Add(time.Minute)); !got.Equal(noon.Add(time.Minute)) {
		t.Errorf("a forgotten member is healthy since %s", got)
	}
	if p.record(want, nil, true, noon); len(p.entries) != 1 {
		t.Errorf("deleted clusters are kept: %v", p.entries)
	}
}

func TestVolume(t *testing.T) {
	const empty = `{"level":"fatal","msg":"discovery failed","error":"couldn't find local name \"e-0\" in the initial cluster configuration"}`
	claim := &corev1.PersistentVolumeClaim{}
	claim.Annotations = map[string]string{etcd.AnnotationVersion: "3.6.16"}
	claim.Labels = etcd.ClaimLabels(plain(""), "my-etcd-0")
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("512Mi")}
	whole := etcd.Volume{Exists: true, Version: "3.6.16", Size: 1 << 30, Capacity: 512 << 20}
	stripped := whole
	stripped.Stripped = true
	unlabeled := claim.DeepCopy()
	delete(unlabeled.Labels, etcd.LabelCluster)
	lost := whole
	lost.Lost, lost.Detail = true, "the data directory is empty, or its log is missing"
	cases := map[string]struct {
		reason string
		medium etcdv1.Medium
		member etcd.Member
		claim  *corev1.PersistentVolumeClaim
		words  string
		want   etcd.Volume
	}{
		"None":     {"no claim", etcdv1.MediumPersistent, etcd.Member{Set: etcd.Set{Exists: true}}, nil, "", etcd.Volume{}},
		"Whole":    {"a claim, and nothing is known against it", etcdv1.MediumPersistent, etcd.Member{}, claim, "exit", whole},
		"Stripped": {"its name says whose it is, and its labels do not", etcdv1.MediumPersistent, etcd.Member{}, unlabeled, "exit", stripped},
		"Lost":     {"etcd reports an empty directory with a disabled bootstrap", etcdv1.MediumPersistent, etcd.Member{Bootstrap: etcd.BootstrapDisabled}, claim, empty, lost},
		"Open":     {"the same words of a member that had nothing yet mean nothing", etcdv1.MediumPersistent, etcd.Member{Bootstrap: etcd.BootstrapJoin}, claim, empty, whole},
		"Volatile": {"data as long as there is a StatefulSet", etcdv1.MediumMemory, etcd.Member{Set: etcd.Set{Exists: true}}, nil, "", etcd.Volume{Exists: true}},
		"Gone":     {"and no longer", etcdv1.MediumMemory, etcd.Member{}, nil, "", etcd.Volume{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := plain("")
			want.Spec.Storage.Medium, c.member.Name = c.medium, "my-etcd-0"
			if diff := cmp.Diff(c.want, volume(want, c.member, c.claim, c.words)); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}

// A snapshot that was restored in place serves with another ID.
func TestOtherClusterID(t *testing.T) {
	want := plain("")
	said := map[string]answer{"a": answerOf(1, 8, 1, etcd.Healthy)}
	if got := otherClusterID(want, said); got != 0 {
		t.Errorf("before an ID is remembered: %d", got)
	}
	want.Status.ClusterID = "7"
	if got := otherClusterID(want, said); got != 8 {
		t.Errorf("got %d", got)
	}
	said["b"] = answerOf(2, 7, 0, etcd.Unhealthy)
	if got := otherClusterID(want, said); got != 0 {
		t.Errorf("while a member of the cluster answers: %d", got)
	}
}

// A member with the data of another cluster answers for that, while a quorum of the recorded one answers.
func TestForeignMember(t *testing.T) {
	list := memberList{cluster: 7, source: answer{conn: &grpc.ClientConn{}}, foreign: map[string]bool{"my-etcd-1": true}}
	for name, c := range map[string]struct {
		list    memberList
		cluster uint64
		want    bool
	}{
		"Own": {memberList{cluster: 7, source: list.source}, 7, false}, "Foreign": {list, 8, true}, "NotItself": {memberList{cluster: 7, source: list.source}, 8, false},
	} {
		m := withAnswer(etcd.Member{Name: "my-etcd-1", ID: 1}, answerOf(1, c.cluster, 0, etcd.Healthy), c.list)
		if m.Foreign != c.want || m.Foreign && m.Health != etcd.Unhealthy {
			t.Errorf("%s: foreign is %t, and it is %q", name, m.Foreign, m.Health)
		}
	}
}

// etcd keeps the alarms of members that it no longer lists.
func TestLeftAlarms(t *testing.T) {
	r := memberList{
		entries: []entry{{Member: &pb.Member{ID: 1}}},
		alarms:  []*pb.AlarmMember{{MemberID: 1, Alarm: pb.AlarmType_CORRUPT}, {MemberID: 2, Alarm: pb.AlarmType_CORRUPT}, {Alarm: pb.AlarmType_NOSPACE}},
	}
	want := []etcd.Alarm{{ID: 2, Name: "CORRUPT"}, {Name: "NOSPACE"}}
	if diff := cmp.Diff(want, r.leftAlarms()); diff != "" {
		t.Error(diff)
	}
}

// What cannot be read is not known: the members report an alarm, and the list of the alarms cannot be had.
func TestUnreadableAlarmsAreNotNone(t *testing.T) {
	conn, err := grpc.NewClient("127.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	a := answer{conn: conn, health: etcd.Healthy, status: &pb.StatusResponse{Errors: []string{"memberID:2 alarm:CORRUPT "}, RaftAppliedIndex: 9}}
	got := alarms(t.Context(), a, map[string]answer{"e-0": a, "e-1": a})
	if len(got) != 1 || got[0].MemberID != 2 || got[0].Alarm != pb.AlarmType_CORRUPT {
		t.Errorf("a member reports CORRUPT, and the world has %v: another member may copy the data", got)
	}
}
