package driver

import (
	"sync"
	"sync/atomic"
)

// hands is how many requests are under way at a time: enough to keep an API server
// busy, and few enough to leave it something for others.
const hands = 256

// inParallel does all n things, and returns the error of the first that failed.
func inParallel(n int, do func(i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, hands) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				errs[i] = do(i)
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
