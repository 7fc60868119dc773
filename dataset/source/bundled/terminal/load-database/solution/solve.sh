sqlite3 -batch library.db <<'END'
create table raw (id text, title text, year text);
.mode csv
.import books.csv raw
create table books (id integer primary key, title text, year integer);
insert into books
select cast(id as integer), title, cast(year as integer) from raw r
where year <> '' and year not glob '*[^0-9]*'
	and not exists (select 1 from raw e where e.id = r.id and e.rowid < r.rowid and e.year <> '' and e.year not glob '*[^0-9]*')
order by rowid;
drop table raw;
.mode list
.once years.txt
select year, count(*) from books group by year order by year;
END
