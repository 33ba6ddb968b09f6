package main

import (
	"context"
	"fmt"
	"slices"
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

// copies watches the volumes during a round. When a volume is deleted, but not by the adversary,
// as many copies as the quorum needs must answer without it.
type copies struct {
	*adversary
	cancel context.CancelFunc
	done   chan struct{}

	mu         sync.Mutex
	voted      map[string]bool // claims whose member has answered as a voter
	judged     map[types.UID]bool
	ids        map[uint64]bool // of clusters that answered
	violations []string
	told       map[string]bool // messages of Stalled
}

func (v *adversary) watchCopies(ctx context.Context) *copies {
	ctx, cancel := context.WithCancel(ctx)
	c := &copies{
		adversary: v, cancel: cancel, done: make(chan struct{}),
		voted: map[string]bool{}, judged: map[types.UID]bool{}, ids: map[uint64]bool{}, told: map[string]bool{},
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
	for _, claim := range claims.Items {
		if claim.DeletionTimestamp != nil && claim.Labels[does.Bystander] == "" && !c.judged[claim.UID] {
			c.judged[claim.UID] = true
			c.judge(claim, answers, members, err)
		}
	}
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
			c.voted[claimOf(a.pod)] = true
		}
	}
}

// judge checks a volume whose deletion has begun. One without a voter's data may be deleted any time.
func (c *copies) judge(claim corev1.PersistentVolumeClaim, answers []answer, members []*pb.Member, unlisted error) {
	if c.deletedClaim(claim.Name) || !c.voted[claim.Name] {
		return
	}
	voters, answering := 0, 0
	for _, m := range members {
		if !m.IsLearner {
			voters++
		}
	}
	for _, a := range answers {
		if a.err == nil && claimOf(a.pod) != claim.Name && isVoter(members, a.status.Header.MemberId) {
			answering++
		}
	}
	if unlisted != nil || answering < voters/2+1 {
		c.violations = append(c.violations, fmt.Sprintf(
			"the volume %s was deleted by the operator while %d of %d voters answered without it (member list: %v)", claim.Name, answering, voters, unlisted))
	}
}

// listen records the messages with which the instance asks for a person.
func (c *copies) listen(ctx context.Context) {
	obj, err := c.object(ctx)
	if err != nil {
		return
	}
	for _, condition := range obj.Status.Conditions {
		if condition.Type == "Stalled" && condition.Status == "True" {
			c.told[condition.Reason+": "+condition.Message] = true
		}
	}
}

func (c *copies) verdict() (violations, told []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for words := range c.told {
		told = append(told, words)
		if !namesWayOut(words) {
			violations = append(violations, fmt.Sprintf("the condition Stalled names no way out: %q", words))
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
