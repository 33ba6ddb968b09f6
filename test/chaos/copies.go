package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	does "github.com/governor-dev/governor/kube/chaos"
)

// lookEvery is the interval of checks of the copies.
const lookEvery = 400 * time.Millisecond

// copies watches the copies of the data during a round: the volumes, or the pods where the data goes
// with them. When a copy is deleted, but not by the adversary, as many copies as the quorum needs must
// answer without it. A deletion happens between two checks: a copy that answers one of them counts,
// because it may be restarted right afterwards.
type copies struct {
	*adversary
	cancel context.CancelFunc
	done   chan struct{}

	mu         sync.Mutex
	voted      map[string]bool // copies whose member has answered as a voter
	judged     map[types.UID]bool
	pods       map[types.UID]corev1.Pod // that have answered as voters, with volatile data
	ids        map[uint64]bool          // of clusters that answered
	before     evidence                 // of the last check
	violations []string
	told       map[stall]bool
}

func (v *adversary) watchCopies(ctx context.Context) *copies {
	ctx, cancel := context.WithCancel(ctx)
	c := &copies{
		adversary: v, cancel: cancel, done: make(chan struct{}),
		voted: map[string]bool{}, judged: map[types.UID]bool{}, pods: map[types.UID]corev1.Pod{}, ids: map[uint64]bool{}, told: map[stall]bool{},
	}
	go c.run(ctx)
	return c
}

func (c *copies) run(ctx context.Context) {
	defer close(c.done)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		c.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (c *copies) end() {
	c.cancel()
	<-c.done
}

func (c *copies) look(ctx context.Context) {
	answers := c.ask(ctx)
	var claims corev1.PersistentVolumeClaimList
	if c.api.List(ctx, &claims, client.InNamespace(c.Key.Namespace)) != nil {
		return
	}
	members, err := c.list(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hear(answers, members)
	now := evidence{answers, members, err}
	for _, claim := range claims.Items {
		if claim.DeletionTimestamp != nil && claim.Labels[does.Bystander] == "" && !c.judged[claim.UID] {
			c.judged[claim.UID] = true
			c.judge(claim, now)
		}
	}
	c.judgePods(now)
	c.before = now
	c.listen(ctx)
}

// hear records which members answer as voters, with their volumes and clusters.
func (c *copies) hear(answers []answer, members []*pb.Member) {
	for _, a := range answers {
		if a.err != nil {
			continue
		}
		c.ids[a.status.Header.ClusterId] = true
		if isVoter(members, a.status.Header.MemberId) {
			c.voted[copyOf(a.pod)] = true
			if claimOf(a.pod) == "" {
				c.pods[a.pod.UID] = a.pod
			}
		}
	}
}

// evidence is what one check sees of the members.
type evidence struct {
	answers  []answer
	members  []*pb.Member
	unlisted error
}

// judge checks a volume whose deletion has begun. One without a voter's data may be deleted any time.
func (c *copies) judge(claim corev1.PersistentVolumeClaim, now evidence) {
	if !c.deletedClaim(claim.Name) && c.voted[claim.Name] {
		c.require(claim.Name, "the volume "+claim.Name, now)
	}
}

// judgePods checks the pods with volatile data that are gone, or being deleted, at the operator's
// request: another controller may delete pods too.
func (c *copies) judgePods(now evidence) {
	for uid, p := range c.pods {
		if !c.judged[uid] && c.deletedByOperator(p) {
			c.judged[uid] = true
			c.require(copyOf(p), "the pod "+p.Name+" with its data", now)
		}
	}
}

// deletedByOperator reports whether a request of the operator deletes the pod, or the StatefulSet that
// owns it, since the pod has existed.
func (c *copies) deletedByOperator(p corev1.Pod) bool {
	if c.proxy == nil {
		return false // nothing shows the operator's requests
	}
	set, _, _ := strings.Cut(p.Name+"/", "-0/")
	for _, object := range []string{"pods/" + p.Name, "statefulsets/" + set} {
		if at := c.proxy.deletedAt(p.Namespace + "/" + object); at.After(p.CreationTimestamp.Add(time.Second)) {
			return true
		}
	}
	return false
}

// require records a violation unless a majority of the voters answers without the copy.
func (c *copies) require(of, words string, now evidence) {
	if answering, voters := without(of, c.before, now); answering < voters/2+1 {
		c.violations = append(c.violations, fmt.Sprintf(
			"%s was deleted by the operator while %d of %d voters answered without it (member list: %v)", words, answering, voters, now.unlisted))
	}
}

// without counts the voters and those that answered one of the checks, apart from the member of the
// copy. If the list cannot be read now, the one before counts without that member: were it still a
// member, the others might have no quorum, and the round would not heal.
func without(deleted string, before, now evidence) (answering, voters int) {
	answered, own := map[uint64]bool{}, uint64(0)
	for _, a := range slices.Concat(before.answers, now.answers) {
		switch {
		case a.err != nil:
		case copyOf(a.pod) == deleted:
			own = a.status.Header.MemberId
		default:
			answered[a.status.Header.MemberId] = true
		}
	}
	members := now.members
	if now.unlisted != nil {
		members = slices.DeleteFunc(slices.Clone(before.members), func(m *pb.Member) bool { return m.ID == own })
	}
	for _, m := range members {
		if m.IsLearner {
			continue
		}
		if voters++; answered[m.ID] {
			answering++
		}
	}
	return answering, voters
}

// listen records what the instance asks a person for.
func (c *copies) listen(ctx context.Context) {
	if now := c.stalled(ctx); now != (stall{}) {
		c.told[now] = true
	}
}

func (c *copies) verdict() (violations, told []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for said := range c.told {
		told = append(told, said.String())
		if _, _, err := said.remedyOf(); err != nil {
			violations = append(violations, err.Error())
		}
	}
	slices.Sort(told)
	if len(c.ids) > 1 {
		violations = append(violations, fmt.Sprintf("members answered of %d clusters", len(c.ids)))
	}
	return append(violations, c.violations...), told
}

func isVoter(members []*pb.Member, id uint64) bool {
	return slices.ContainsFunc(members, func(m *pb.Member) bool { return m.ID == id && !m.IsLearner })
}

func claimOf(p corev1.Pod) string {
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			return v.PersistentVolumeClaim.ClaimName
		}
	}
	return ""
}

// copyOf identifies the copy of the data in the pod: its claim, or the pod itself.
func copyOf(p corev1.Pod) string { return cmp.Or(claimOf(p), string(p.UID)) }
