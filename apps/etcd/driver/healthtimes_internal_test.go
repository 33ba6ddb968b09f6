package driver

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// A clock that is set changes the time since when a health is observed, and not how long ago that is.
func TestRebased(t *testing.T) {
	first := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		reason string
		now    time.Time
		want   time.Time
	}{
		"Right":   {"30 seconds have passed", first.Add(30 * time.Second), first},
		"Drift":   {"a clock that drifts makes no other world", first.Add(30*time.Second + 900*time.Millisecond), first},
		"Forward": {"ten minutes in 30 seconds", first.Add(10 * time.Minute), first.Add(570 * time.Second)},
		"Back":    {"30 seconds before it began", first.Add(-30 * time.Second), first.Add(-time.Minute)},
	} {
		if got := rebased(first, c.now, 30*time.Second); !got.Equal(c.want) {
			t.Errorf("%s: %s: got %s, want %s", name, c.reason, got, c.want)
		}
	}
}

// The operator that begins to lead shows the recorded time, and begins its own.
func TestHealthTimesOfANewLeader(t *testing.T) {
	now := time.Unix(10_000, 0)
	want := &etcdv1.EtcdCluster{}
	want.Status.Members = []etcdv1.MemberStatus{{Name: "e-1", Health: "Unknown", Since: &metav1.Time{Time: now.Add(-time.Hour)}}}
	times := newHealthTimes()
	since, observed := note(times, want, etcd.Member{Name: "e-1"}, now)
	if !since.Equal(now.Add(-time.Hour)) || !observed.Equal(now) {
		t.Errorf("it is silent since %s, and watched since %s", since, observed)
	}
	if _, later := note(times, want, etcd.Member{Name: "e-1"}, now.Add(time.Minute)); !later.Equal(now) {
		t.Errorf("a minute later it is watched since %s", later)
	}
	if since, observed = note(times, want, etcd.Member{Name: "e-1", Health: etcd.Healthy}, now.Add(time.Hour)); !since.Equal(observed) {
		t.Errorf("a change of its health is of %s, and watched since %s", since, observed)
	}
}

func note(times *healthTimes, want *etcdv1.EtcdCluster, m etcd.Member, now time.Time) (since, observed time.Time) {
	members := []etcd.Member{m}
	times.record(want, members, true, now)
	return members[0].Since, members[0].Watched
}

// TestTimeToAnswer: a member has its whole time to answer after a restart, and once its certificates are usable.
func TestTimeToAnswer(t *testing.T) {
	want := plain("")
	times := newHealthTimes()
	silent := func(usable bool, at time.Duration) time.Time {
		members := []etcd.Member{{Name: "my-etcd-0", Health: etcd.Unknown}}
		times.record(want, members, usable, noon.Add(at))
		return members[0].Watched
	}
	silent(true, 0)
	if got := silent(true, time.Minute); !got.Equal(noon) {
		t.Errorf("it was silent before: %s", got)
	}
	times.watchAgain(want, "my-etcd-0")
	if got := silent(true, 2*time.Minute); !got.Equal(noon.Add(2 * time.Minute)) {
		t.Errorf("it was restarted: %s", got)
	}
	silent(false, 3*time.Minute)
	if got := silent(true, 4*time.Minute); !got.Equal(noon.Add(3 * time.Minute)) {
		t.Errorf("its certificates were unusable: %s", got)
	}
}
