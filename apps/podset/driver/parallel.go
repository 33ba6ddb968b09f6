package driver

import (
	"sync"
	"sync/atomic"
)

// most is how many requests are under way at a time, for all sets: etcd writes what
// comes together to disk together, so fewer would make it wait.
const most = 256

// hands are what requests are made with; one is taken for each.
type hands chan struct{}

// inParallel does all n things, and returns the error of the first that failed.
func (h hands) inParallel(n int, do func(i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, cap(h)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				h <- struct{}{}
				errs[i] = do(i)
				<-h
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
