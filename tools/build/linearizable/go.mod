module davit.dev/test/linearizable

go 1.25.0

toolchain go1.26.8

tool davit.dev/test/linearizable

require github.com/anishathalye/porcupine v1.3.1
