module github.com/governor-dev/governor

go 1.26.0
