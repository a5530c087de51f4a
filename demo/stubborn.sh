#!/usr/bin/env bash
# A server that does not want to go: deaf to TERM, with a daemon that left its session, a child of that, and one that is stopped.
trap '' TERM HUP INT
(setsid bash -c 'sleep 1000 & exec sleep 1000' &)    # forked twice: nobody's child any more
(setsid bash -c 'kill -STOP $BASHPID; sleep 1000' &) # stopped: a signal it does not ignore would only wait
echo "serving"
exec sleep 1000
