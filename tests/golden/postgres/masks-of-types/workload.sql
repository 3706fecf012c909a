INSERT INTO k SELECT 2, j,jb,u,n,i,e,tz,ti,c,ci,x,a,iv,r,h,m,ts FROM k;
UPDATE k SET n=1 WHERE id=2;
