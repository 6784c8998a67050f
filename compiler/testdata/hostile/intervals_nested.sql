-- make_interval inside make_interval
select make_interval(make_interval(make_interval(make_interval(make_interval(make_interval(make_interval(make_interval(make_interval(make_interval(make_interval(make_interval(make_interval(make_interval(make_interval(make_interval(make_interval(make_interval(make_interval(make_interval(1))))))))))))))))))))
