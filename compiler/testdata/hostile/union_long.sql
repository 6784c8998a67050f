-- a long UNION over doubled columns
select *, * from (select *, * from (select *, * from (select *, * from (select *, * from (select *, * from (select *, * from (select *, * from (select *, * from (select *, * from (select 1 as x)))))))))) union all select 1
