package main

import (
	"context"
	"fmt"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// creation is from apply to all members healthy, of one size.
type creation struct {
	Size     int      `json:"size"`
	Plain    []sample `json:"plain"`
	Governor []sample `json:"governor"`
	// Encrypted is Governor's default, with an authority and certificates made for
	// the cluster. Plain has no such thing.
	Encrypted []sample `json:"governorTLS"`

	// The operator's median by the plain StatefulSet's.
	Ratio          float64 `json:"ratio"`
	RatioReady     float64 `json:"ratioReady"`
	RatioEncrypted float64 `json:"ratioTLS"`
}

func measureCreations(ctx context.Context, s *stage, o options) ([]creation, error) {
	if len(o.sizes) > 0 {
		progress("warming up")
		if _, err := s.life(ctx, governed("warm-up", 1, etcdv1.Managed)); err != nil {
			return nil, err
		}
	}
	var all []creation
	for _, size := range o.sizes {
		c := creation{Size: size}
		for round := range o.rounds {
			progress("%d members, round %d of %d", size, round+1, o.rounds)
			if err := c.round(ctx, s, round); err != nil {
				return nil, fmt.Errorf("%d members: %w", size, err)
			}
		}
		c.compare()
		all = append(all, c)
	}
	return all, nil
}

// round has each of the three once, in an order that changes: whatever else the
// machine does shall hit all of them.
func (c *creation) round(ctx context.Context, s *stage, nth int) error {
	name := func(kind string) string { return fmt.Sprintf("%s-%d-%d", kind, c.Size, nth) }
	still, err := plain(name("plain"), c.Size)
	if err != nil {
		return err
	}
	turns := []struct {
		who *subject
		to  *[]sample
	}{
		{still, &c.Plain},
		{governed(name("open"), c.Size, etcdv1.Disabled), &c.Governor},
		{governed(name("tls"), c.Size, etcdv1.Managed), &c.Encrypted},
	}
	for i := range turns {
		t := turns[(i+nth)%len(turns)]
		took, err := s.life(ctx, t.who)
		if err != nil {
			return err
		}
		progress("  %-12s healthy after %.2f s, ready after %.2f s", t.who.name, took.Healthy, took.Ready)
		*t.to = append(*t.to, took)
	}
	return nil
}

// life is from apply to the end of the last volume.
func (s *stage) life(ctx context.Context, x *subject) (sample, error) {
	took, err := s.create(ctx, x)
	if err != nil {
		return took, err
	}
	return took, s.remove(ctx, x)
}

func (c *creation) compare() {
	c.Ratio = median(c.Governor, untilHealthy) / median(c.Plain, untilHealthy)
	c.RatioReady = median(c.Governor, untilReady) / median(c.Plain, untilReady)
	c.RatioEncrypted = median(c.Encrypted, untilHealthy) / median(c.Plain, untilHealthy)
}

func untilHealthy(s sample) float64 { return s.Healthy }

func untilReady(s sample) float64 { return s.Ready }
